#include "server/conductor/thinker.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace attune::server {

std::vector<Thought> ThoughtsAfter(std::span<const Event> events, const Brain& brain) {
  const auto begun = std::ranges::find_if(
      events, [](const Event& event) { return std::holds_alternative<ProposalBegun>(event.fact); });
  if (begun == events.end()) return {};
  return brain.Thoughts(EventSeq(begun->seq.value - 1));
}

Thinker::Thinker(Submissions& submissions) : submissions_(submissions) {
  for (int i = 0; i < kThinkers; ++i) threads_.emplace_back([this] { Run(); });
}

Thinker::~Thinker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Thinker::OnStarted(const Brain& brain) { Add(brain.Thoughts()); }

void Thinker::OnDurable(std::span<const Event> events, const Brain& brain) {
  Add(ThoughtsAfter(events, brain));
}

void Thinker::Add(std::vector<Thought> thoughts) {
  if (thoughts.empty()) return;
  std::lock_guard lock(mutex_);
  std::ranges::move(thoughts, std::back_inserter(waiting_));
  wake_.notify_all();
}

void Thinker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Thought thought = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    submissions_.Submit(thought.Think(), {});
    lock.lock();
  }
}

}  // namespace attune::server
