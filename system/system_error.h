#pragma once

#include <string>

#include "base/result.h"

namespace attune {

// `what` failed with this errno: kStorageFull for a full disk, kUnavailable where the system has
// too little of something now, else kDenied. The message is "what: words of the errno".
base::Error SystemError(const std::string& what, int number);  // the SDK has another Error

// Whether this errno says that a disk or a quota is full.
bool IsStorageFull(int number);

}  // namespace attune
