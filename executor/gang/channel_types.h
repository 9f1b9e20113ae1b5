#pragma once

#include "base/result.h"
#include "channel/messages.h"

// Types of the worker channel that this folder uses under their own names.
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
