#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"
#include "core/log/command.h"

namespace attune::server {

// What a command led to, once it is durable; with an error nothing has happened.
using Done = std::function<void(const Result<std::span<const Event>>&)>;
// Whether what the facts led to is durable.
using Stored = std::function<void(const Status&)>;
using Look = std::function<void(const Brain&)>;

// What whoever speaks to the outside asks of the conductor. Callbacks come after the commit, in the
// order of submission.
class Submissions {
 public:
  virtual ~Submissions() = default;

  // One command, with an answer of its own. `done` may be empty.
  virtual void Submit(Command command, Done done) = 0;

  // Facts that somebody outside keeps until they are stored. Each is decided by itself: one that
  // is refused would be refused again, and leaves the others alone. An error is the store's.
  virtual void Record(std::vector<Command> facts, Stored stored) = 0;

  // Facts that come after others were dropped, so that most must wait until those are said again.
  // Only what cannot matter any more is decided: facts about attempts of trials that have ended.
  virtual void RecordEnds(std::vector<Command> facts) = 0;

  // Runs `look` between two batches, on durable state only; never, where it stops before.
  virtual void Post(Look look) = 0;

  // What is reachable has changed: look again for what can start.
  virtual void Nudge() = 0;
};

// Told of what has become durable, by the conductor, between two batches: be quick, and submit
// nothing that you wait for.
class Listener {
 public:
  virtual ~Listener() = default;

  // The log has been read; nothing has been decided yet.
  virtual void OnStarted(const Brain&) {}

  // After a batch, before anybody is answered: the newest durable event, and why nothing can be
  // written now. Told when either has changed.
  virtual void OnState(EventSeq /*durable*/, const Status& /*writable*/) {}

  // After the answers.
  virtual void OnDurable(std::span<const Event> events, const Brain& brain) = 0;
};

}  // namespace attune::server
