#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/brain/thought.h"
#include "server/conductor/submissions.h"

namespace attune::server {

// Proposals that are thought about at once.
inline constexpr int kThinkers = 2;

// Makes the proposals of searchers that think, on threads of its own, and brings each as a command.
// It begins when the log is durable up to what a searcher saw; what was begun and not brought when
// the last process ended is thought again, the same. The conductor never waits for it.
class Thinker final : public Listener {
 public:
  // The conductor outlives the object.
  explicit Thinker(Submissions& submissions);

  // Waits for the thoughts under way; forgets the others.
  ~Thinker() override;

  void OnStarted(const Brain& brain) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  void Add(std::vector<Thought> thoughts);
  void Run();

  Submissions& submissions_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Thought> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// The proposals that these events have made due.
std::vector<Thought> ThoughtsAfter(std::span<const Event> events, const Brain& brain);

}  // namespace attune::server
