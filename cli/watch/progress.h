#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "cli/client/event_stream.h"
#include "cli/output.h"
#include "cli/watch/model.h"

namespace attune::cli {

// Shows the progress of a watched sweep. All calls come from one thread.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Progress() = default;
  virtual void OnEvent(const ServerEvent& event,
                       const SweepModel& sweep) = 0;  // already applied to `sweep`
  virtual void Tick(const SweepModel& sweep, Clock::time_point now) = 0;  // a few times a second
  virtual void Note(std::string_view line) = 0;  // a message about the connection
  virtual void Finish(const SweepModel& sweep) = 0;
};

// For people: redraws a block in place on a live terminal. Elsewhere prints a line for each change
// of state and a regular summary.
std::unique_ptr<Progress> MakeTextProgress(Output& output);

// Prints each event as one line of JSON, as in the events stream, with its kind in `event`.
std::unique_ptr<Progress> MakeJsonProgress(Output& output, Output& notes);

// Prints only notes.
std::unique_ptr<Progress> MakeQuietProgress(Output& notes);

}  // namespace attune::cli
