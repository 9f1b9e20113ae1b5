#pragma once

#include "channel/or_error.h"
#include "channel/unique_fd.h"

// What this folder and executor/gang are written in.
namespace attune::gang {

using channel::Error;
using channel::OrError;
using channel::UniqueFd;

}  // namespace attune::gang
