#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/brain/thought.h"
#include "server/conductor/submissions.h"

namespace attune::server {

// Has the thoughts of searchers thought somewhere else, and submits what they suggest. The
// conductor never waits for it. A proposal that the store had no room for is submitted again; one
// that died with the process is begun again by the next one, as the log says.
class Thinker final : public Listener {
 public:
  // Has the job done later, on any thread; not within the call.
  using Run = std::function<void(std::function<void()> job)>;

  // The conductor outlives the thinker, which outlives every job. Subscribe it before the start.
  Thinker(Submissions& conductor, Run run) : conductor_(conductor), run_(std::move(run)) {}

  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  void Begin(const Brain& brain);
  void ThinkOne();
  void Say(Propose proposal);
  void SayAgain();

  Submissions& conductor_;
  const Run run_;
  EventSeq begun_{0};  // conductor's thread only: thoughts up to here were begun

  std::mutex mutex_;
  std::deque<Thought> due_;       // a job each
  std::vector<Propose> refused_;  // to be submitted again
};

}  // namespace attune::server
