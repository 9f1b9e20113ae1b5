#pragma once

#include <utility>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::gang {

// A TCP port that is reserved for a gang from before its ranks start until they are gone.
//
// Its socket is bound but does not listen. So the kernel never picks the port for programs that ask
// for any free port. A program that names the port and sets SO_REUSEADDR, as servers such as c10d's
// store do, can listen on it.
class HeldPort {
 public:
  static Result<HeldPort> Hold();

  int number() const { return number_; }

 private:
  HeldPort(UniqueFd socket, int number) : socket_(std::move(socket)), number_(number) {}

  UniqueFd socket_;
  int number_;
};

}  // namespace attune::gang
