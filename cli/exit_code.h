#pragma once

#include "base/result.h"

namespace attune::cli {

// The exit code of the process. Documented in docs/reference/cli.md; scripts depend on the numbers.
enum class ExitCode {
  kSuccess = 0,
  kFailure = 1,
  kUsage = 2,  // wrong arguments, or a wrong sweep file
  kNotFound = 3,
  kDenied = 4,
  kSweepFailed = 5,  // the watched sweep failed or was killed
  kTimeout = 6,      // --timeout has passed
  kInterrupted = 130,
};

inline ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return ExitCode::kUsage;
    case ErrorCode::kNotFound:
      return ExitCode::kNotFound;
    case ErrorCode::kDenied:
      return ExitCode::kDenied;
    default:
      return ExitCode::kFailure;
  }
}

}  // namespace attune::cli
