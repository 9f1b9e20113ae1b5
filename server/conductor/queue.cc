#include "server/conductor/queue.h"

#include <utility>

namespace attune::server {

void Queue::Push(Submission submission) {
  commands_ += submission.commands.size();
  waiting_.push_back(std::move(submission));
}

std::vector<Submission> Queue::TakeBatch() {
  std::vector<Submission> batch;
  size_t commands = 0;
  while (!waiting_.empty() && batch.size() < kBatchCommands && commands < kBatchCommands) {
    commands += waiting_.front().commands.size();
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  commands_ -= commands;
  return batch;
}

}  // namespace attune::server
