#pragma once

#include <stdexcept>
#include <string>

namespace attune::inline sdk {

// The exception of the SDK. Its message names the cause and the next step. Like any exception that
// leaves training code, it fails the rank, and its text becomes the attempt's failure. If training
// code does not catch an exception, the stack is not unwound: the rank reports the cause and exits
// at once, without destroying any objects.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown if a full disk or a quota stops a write. If it fails the rank, the host is at fault and
// not the trial, so the trial loses no restart.
class DiskFull : public Error {
 public:
  using Error::Error;
};

// Thrown by calls of TorchTrainer and WorkerGroup if one of their workers failed. The message names
// the worker.
class WorkerError : public Error {
 public:
  // `worker` is -1 if no particular worker is at fault.
  WorkerError(int worker, bool lost, const std::string& message)
      : Error(message), worker_(worker), lost_(lost) {}

  // The index of the worker, or -1.
  int worker() const { return worker_; }

  // True if the process died or went silent, which may not happen again. False if its code threw an
  // exception.
  bool lost() const { return lost_; }

 private:
  int worker_;
  bool lost_;
};

}  // namespace attune::inline sdk
