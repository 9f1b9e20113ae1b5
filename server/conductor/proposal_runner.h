#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/brain/thought.h"
#include "server/conductor/submissions.h"

namespace attune::server {

// Runs searchers outside the conductor's thread and submits their proposals, so the conductor never
// waits for a searcher. Submits a proposal again if the store had no space for it. A proposal that
// is lost with the process is computed again after the next start, as the log demands.
class ProposalRunner final : public Listener {
 public:
  // Runs the job later on any thread, not within the call.
  using Run = std::function<void(std::function<void()> job)>;

  // The conductor must outlive this object, and this object must outlive every job. Subscribe it
  // before the start.
  ProposalRunner(Submissions& conductor, Run run) : conductor_(conductor), run_(std::move(run)) {}

  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  void Begin(const Brain& brain);
  void ComputeNext();
  void Submit(Propose proposal);
  void Resubmit();

  Submissions& conductor_;
  const Run run_;
  // used only by the conductor's thread: the last event whose thoughts were begun
  EventSeq last_begun_{0};

  std::mutex mutex_;
  std::deque<Thought> due_;       // one job each
  std::vector<Propose> refused_;  // to submit again
};

}  // namespace attune::server
