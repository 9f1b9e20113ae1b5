#pragma once

#include <stdexcept>
#include <string>

namespace attune::inline sdk {

// What the SDK throws: the message names the culprit and the remedy. Thrown out of training code
// (like any exception), it fails the rank, and its text becomes the attempt's failure. An exception
// that training code does not catch unwinds nothing: the rank says why and leaves at once, without
// destroying any of its objects.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the SDK throws when a disk or a quota refuses what it writes. If it fails the rank, the host
// is to blame and not the trial: no restart is spent.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// What a driver's call throws when one of its workers failed: of TorchTrainer and WorkerGroup. The
// message names the worker.
class WorkerError : public Error {
 public:
  // `worker` is -1 where none in particular is to blame.
  WorkerError(int worker, bool lost, const std::string& message)
      : Error(message), worker_(worker), lost_(lost) {}

  // By its number, as in the constructor.
  int worker() const { return worker_; }

  // Whether the process is gone or silent, which may not happen again, rather than that its code
  // threw an exception.
  bool lost() const { return lost_; }

 private:
  int worker_;
  bool lost_;
};

}  // namespace attune::inline sdk
