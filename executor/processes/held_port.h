#pragma once

#include <utility>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::gang {

// A TCP port that stays a gang's own from before its ranks start until they are gone.
//
// Its socket is bound and does not listen. So the kernel gives the port to nobody who asks for any
// port, neither to listen nor to connect from, while a program that names it, and allows reuse of
// addresses (SO_REUSEADDR) as servers do, c10d's store among them, gets it.
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
