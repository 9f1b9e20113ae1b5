#include "checkpoints/worker.h"

namespace attune::checkpoints {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Worker::Add(const Piece& piece) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kWaitingMax; });
  waiting_.push_back(&piece);
  changed_.notify_all();
}

void Worker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Piece& piece = *waiting_.front();
    waiting_.pop_front();
    changed_.notify_all();
    lock.unlock();
    work_(piece);
    lock.lock();
  }
}

}  // namespace attune::checkpoints
