#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"
#include "core/log/command.h"

namespace attune::server {

// Gets the events of a command once they are durable. With an error, nothing has happened.
using Done = std::function<void(const Result<std::span<const Event>>&)>;
// Gets whether the events of the facts are durable.
using Stored = std::function<void(const Status&)>;
using StateReader = std::function<void(const Brain&)>;

// The requests that others make to the conductor. Callbacks run after the commit, in the order of
// submission.
class Submissions {
 public:
  virtual ~Submissions() = default;

  // Submits one command. `done` may be empty.
  virtual void Submit(Command command, Done done) = 0;

  // Submits facts that their sender keeps until they are stored. Each fact is decided separately: a
  // refused one would be refused again and does not affect the others. `stored` gets only errors of
  // the store.
  virtual void Record(std::vector<Command> facts, Stored stored) = 0;

  // Submits facts that follow dropped ones. Most of them must wait until the dropped ones are sent
  // again. Decides only facts about attempts of trials that have ended, because their order no
  // longer matters.
  virtual void RecordEnds(std::vector<Command> facts) = 0;

  // Calls `look` between two batches, with durable state. Does not call it if the conductor stops
  // before.
  virtual void Post(StateReader look) = 0;

  // Makes the conductor check what can start, because the set of reachable executors has changed.
  virtual void CheckForStarts() = 0;
};

// Gets notifications from the conductor between two batches. Methods must be fast and must not wait
// for a command that they submit.
class Listener {
 public:
  virtual ~Listener() = default;

  // The log has been read, and no command has been decided yet.
  virtual void OnStarted(const Brain&) {}

  // Called after a batch and before its answers when either value has changed: the newest durable
  // event, and why the store refuses writes.
  virtual void OnState(EventSeq /*durable*/, const Status& /*writable*/) {}

  // Called after the answers.
  virtual void OnDurable(std::span<const Event> events, const Brain& brain) = 0;
};

}  // namespace attune::server
