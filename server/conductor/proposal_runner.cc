#include "server/conductor/proposal_runner.h"

#include <algorithm>
#include <utility>

namespace attune::server {

void ProposalRunner::OnStarted(const Brain& brain) { Begin(brain); }

void ProposalRunner::OnState(EventSeq, const Status& writable) {
  if (writable.ok()) Resubmit();
}

void ProposalRunner::OnDurable(std::span<const Event> events, const Brain& brain) {
  Resubmit();
  const bool has_begun = std::ranges::any_of(
      events, [](const Event& event) { return std::holds_alternative<ProposalBegun>(event.fact); });
  if (has_begun) Begin(brain);
}

void ProposalRunner::Begin(const Brain& brain) {
  std::vector<Thought> thoughts = brain.Thoughts(last_begun_);
  last_begun_ = brain.state().last_seq;
  const size_t count = thoughts.size();
  {
    std::lock_guard lock(mutex_);
    std::ranges::move(thoughts, std::back_inserter(due_));
  }
  for (size_t i = 0; i < count; ++i) run_([this] { ComputeNext(); });
}

void ProposalRunner::ComputeNext() {
  std::unique_lock lock(mutex_);
  const Thought thought = std::move(due_.front());
  due_.pop_front();
  lock.unlock();
  Submit(thought.Think());
}

void ProposalRunner::Submit(Propose proposal) {
  Command command = proposal;
  conductor_.Submit(std::move(command), [this, proposal = std::move(proposal)](const auto& result) {
    if (result.ok()) return;
    std::lock_guard lock(mutex_);
    refused_.push_back(proposal);
  });
}

void ProposalRunner::Resubmit() {
  std::vector<Propose> refused;
  {
    std::lock_guard lock(mutex_);
    refused.swap(refused_);
  }
  for (Propose& proposal : refused) Submit(std::move(proposal));
}

}  // namespace attune::server
