#pragma once

#include <string>

#include "base/result.h"

namespace attune {

// The error of a system call that failed with this errno. kStorageFull: the disk or quota is full.
// kUnavailable: the system lacks memory or descriptors now. kDenied: anything else. The message is
// "`what`: text of the errno".
base::Error SystemError(const std::string& what, int number);  // the SDK has another Error

// Whether this errno says that a disk or a quota is full.
bool IsStorageFull(int number);

}  // namespace attune
