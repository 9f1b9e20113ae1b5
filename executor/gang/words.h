#pragma once

#include "base/result.h"
#include "channel/messages.h"

// The words of the worker channel that are this folder's as well.
namespace attune::gang {

using channel::Action;
using channel::CheckpointSaved;
using channel::Logged;
using channel::NamedValue;
using channel::Report;
using channel::Resume;
using channel::Value;
using channel::Verdict;

}  // namespace attune::gang
