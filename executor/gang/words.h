#pragma once

#include "channel/messages.h"
#include "channel/or_error.h"
#include "channel/unique_fd.h"

// The words of the worker channel that are this folder's as well.
namespace attune::gang {

using channel::Action;
using channel::CheckpointSaved;
using channel::Error;
using channel::NamedValue;
using channel::OrError;
using channel::Report;
using channel::Resume;
using channel::UniqueFd;
using channel::Value;
using channel::Verdict;

}  // namespace attune::gang
