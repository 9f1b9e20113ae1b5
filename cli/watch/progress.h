#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "cli/client/event_stream.h"
#include "cli/output.h"
#include "cli/watch/model.h"

namespace attune::cli {

// How a watched sweep is shown. Called on one thread.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Progress() = default;
  virtual void OnEvent(const ServerEvent& event, const SweepModel& sweep) = 0;  // already applied
  virtual void Tick(const SweepModel& sweep, Clock::time_point now) = 0;  // a few times a second
  virtual void Note(std::string_view line) = 0;  // something about the watching itself
  virtual void Finish(const SweepModel& sweep) = 0;
};

// Redraws a block in place on a live terminal; elsewhere writes a line for each change of a state
// and a summary every 60 s.
std::unique_ptr<Progress> ShowForPeople(Output& output);

// One JSON object a line and event, as the events stream has them, with its kind in `event`.
std::unique_ptr<Progress> ShowAsJsonLines(Output& output, Output& notes);

// Nothing but notes.
std::unique_ptr<Progress> ShowNothing(Output& notes);

}  // namespace attune::cli
