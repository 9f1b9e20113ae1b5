#include "server/conductor/thinker.h"

#include <algorithm>
#include <utility>

namespace attune::server {

void Thinker::OnStarted(const Brain& brain) { Begin(brain); }

void Thinker::OnState(EventSeq, const Status& writable) {
  if (writable.ok()) SayAgain();
}

void Thinker::OnDurable(std::span<const Event> events, const Brain& brain) {
  SayAgain();
  const bool begun = std::ranges::any_of(
      events, [](const Event& event) { return std::holds_alternative<ProposalBegun>(event.fact); });
  if (begun) Begin(brain);
}

void Thinker::Begin(const Brain& brain) {
  std::vector<Thought> thoughts = brain.Thoughts(begun_);
  begun_ = brain.state().last_seq;
  const size_t count = thoughts.size();
  {
    std::lock_guard lock(mutex_);
    std::ranges::move(thoughts, std::back_inserter(due_));
  }
  for (size_t i = 0; i < count; ++i) run_([this] { ThinkOne(); });
}

void Thinker::ThinkOne() {
  std::unique_lock lock(mutex_);
  const Thought thought = std::move(due_.front());
  due_.pop_front();
  lock.unlock();
  Say(thought.Think());
}

void Thinker::Say(Propose proposal) {
  Command command = proposal;
  conductor_.Submit(std::move(command), [this, proposal = std::move(proposal)](const auto& result) {
    if (result.ok()) return;
    std::lock_guard lock(mutex_);
    refused_.push_back(proposal);
  });
}

void Thinker::SayAgain() {
  std::vector<Propose> refused;
  {
    std::lock_guard lock(mutex_);
    refused.swap(refused_);
  }
  for (Propose& proposal : refused) Say(std::move(proposal));
}

}  // namespace attune::server
