#pragma once

#include <stdexcept>

namespace attune {

// What the SDK throws: the message names the culprit and the remedy. Thrown out of training code
// (like any exception), it fails the rank, and its text becomes the attempt's failure. An exception
// that training code does not catch unwinds nothing: the rank says why and leaves at once, without
// destroying any of its objects.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attune
