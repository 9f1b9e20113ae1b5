#include "server/conductor/conductor.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <utility>

#include "core/brain/snapshot.h"

namespace attune::server {
namespace {

constexpr size_t kBatchItems = 4096;  // of one transaction
constexpr std::chrono::milliseconds kProbeInterval{500};
constexpr std::chrono::microseconds kTimerMin{1'000};

const Error kStopping{ErrorCode::kUnavailable, "the server is stopping"};

}  // namespace

Conductor::Conductor(const Algorithms& algorithms, EventStore& store, Clock clock)
    : algorithms_(algorithms), store_(store), clock_(std::move(clock)) {}

Conductor::~Conductor() { Stop(); }

Status Conductor::Start() {
  if (Status status = Restore(); !status.ok()) return status;
  durable_seq_ = brain_->state().last_seq;
  ahead_us_ = std::max<int64_t>(0, brain_->state().last_time.us - clock_().us);
  thread_ = std::thread([this] { Run(); });
  return {};
}

Status Conductor::Restore() {
  auto brain = std::make_unique<Brain>(algorithms_, reachable_);
  EventSeq after{0};
  for (EventSeq at_most{std::numeric_limits<int64_t>::max()};;) {
    const auto snapshot = store_.ReadSnapshot(at_most);
    if (!snapshot.ok() || !*snapshot) break;  // the log alone says everything
    if (brain->Load((*snapshot)->bytes).ok()) {
      after = (*snapshot)->seq;
      break;
    }
    brain = std::make_unique<Brain>(algorithms_, reachable_);
    at_most = EventSeq((*snapshot)->seq.value - 1);
  }
  const Status read = store_.Read(after, [&](const Event& event) { brain->Replay(event); });
  if (!read.ok()) return read;
  brain_ = std::move(brain);
  snapshot_seq_ = after;
  return {};
}

// A snapshot saves time at the next start and nothing else: without one the log is read.
void Conductor::SaveSnapshot() {
  if (brain_->state().last_seq != durable_seq_) return;  // the log could not be read again
  snapshot_seq_ = durable_seq_;
  static_cast<void>(store_.SaveSnapshot(snapshot_seq_, SaveState(brain_->state())));
}

void Conductor::Submit(std::vector<Command> commands, Done done) {
  Enqueue({.commands = std::move(commands), .done = std::move(done)});
}

Result<std::vector<Event>> Conductor::Execute(Command command) {
  std::promise<Result<std::vector<Event>>> promise;
  auto answer = promise.get_future();
  std::vector<Command> commands;
  commands.push_back(std::move(command));
  Submit(std::move(commands), [&](const Result<std::span<const Event>>& result) {
    if (result.ok()) {
      promise.set_value(std::vector<Event>(result->begin(), result->end()));
    } else {
      promise.set_value(result.error());
    }
  });
  return answer.get();
}

void Conductor::Post(Look look) { Enqueue({.look = std::move(look)}); }

void Conductor::Query(const Look& look) {
  std::promise<void> looked;
  auto done = looked.get_future();
  Post([&](const Brain& brain) {
    look(brain);
    looked.set_value();
  });
  done.wait();
}

void Conductor::Nudge() { Enqueue({}); }

void Conductor::Enqueue(Item item) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      queue_.push_back(std::move(item));
      wake_.notify_one();
      return;
    }
  }
  if (item.done) item.done(kStopping);
  if (item.look) item.look(Brain(algorithms_, reachable_));
}

Status Conductor::Ready() const {
  std::lock_guard lock(mutex_);
  if (stopping_) return kStopping;
  if (stalled_) return *stalled_;
  return {};
}

EventSeq Conductor::WaitForEvents(EventSeq seq, int timeout_ms) const {
  std::unique_lock lock(mutex_);
  durable_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                    [&] { return durable_seq_ > seq || stopping_; });
  return durable_seq_;
}

void Conductor::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    durable_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Conductor::Run() {
  Handle({});  // what was waiting when the last process ended
  for (;;) {
    std::deque<Item> items;
    bool probe = false;
    const std::optional<Time> due = brain_->Due(Now());
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] { return !queue_.empty() || stopping_; };
      if (stalled_) {
        wake_.wait_for(lock, kProbeInterval, ready);
        probe = true;
      } else if (due) {
        const std::chrono::microseconds left(due->us - Now().us);
        wake_.wait_for(lock, std::max(left, kTimerMin), ready);
      } else {
        wake_.wait(lock, ready);
      }
      if (queue_.empty() && stopping_) break;
      while (!queue_.empty() && items.size() < kBatchItems) {
        items.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
    }
    if (probe) TryAgain();
    Handle(std::move(items));
    if (durable_seq_.value - snapshot_seq_.value >= kSnapshotEvents) SaveSnapshot();
  }
  if (durable_seq_ > snapshot_seq_) SaveSnapshot();
}

// Decides on a batch, writes it, and only then answers and publishes.
void Conductor::Handle(std::deque<Item> items) {
  struct Range {
    size_t begin = 0, end = 0;
    std::optional<Error> refused;
  };
  std::vector<Event> events;
  std::vector<Range> ranges(items.size());
  std::optional<Error> stalled;
  {
    std::lock_guard lock(mutex_);
    stalled = stalled_;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    ranges[i].begin = events.size();
    ranges[i].refused = stalled;
    if (!stalled) ranges[i].refused = Decide(items[i].commands, events);
    ranges[i].end = events.size();
  }
  if (!stalled) {
    auto following = brain_->Advance(Now());
    events.insert(events.end(), std::make_move_iterator(following.begin()),
                  std::make_move_iterator(following.end()));
  }
  std::optional<Error> failed;
  if (!events.empty()) {
    if (const Status written = store_.Append(events); !written.ok()) {
      failed = written.error();
      Drop(*failed);
    }
  }
  if (!failed && !events.empty()) {
    std::lock_guard lock(mutex_);
    durable_seq_ = events.back().seq;
    durable_.notify_all();
  }
  const std::span<const Event> all(events);
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].done) {
      const Range& range = ranges[i];
      if (failed) {
        items[i].done(*failed);
      } else if (range.refused) {
        items[i].done(*range.refused);
      } else {
        items[i].done(all.subspan(range.begin, range.end - range.begin));
      }
    }
    if (items[i].look) items[i].look(*brain_);
  }
  if (!failed && !events.empty()) Publish(all);
}

std::optional<Error> Conductor::Decide(const std::vector<Command>& commands,
                                       std::vector<Event>& events) {
  for (const Command& command : commands) {
    auto decided = brain_->Execute(command, Now());
    if (!decided.ok()) return decided.error();
    events.insert(events.end(), std::make_move_iterator(decided->begin()),
                  std::make_move_iterator(decided->end()));
  }
  return std::nullopt;
}

// The store refused the batch: memory goes back to what is on disk.
void Conductor::Drop(const Error& why) {
  const Status restored = Restore();
  std::lock_guard lock(mutex_);
  stalled_ = restored.ok() ? why : restored.error();
}

void Conductor::TryAgain() {
  if (!store_.Probe().ok()) return;
  if (brain_->state().last_seq != durable_seq_ && !Restore().ok()) return;
  std::lock_guard lock(mutex_);
  stalled_.reset();
}

void Conductor::Publish(std::span<const Event> events) {
  for (Listener* listener : listeners_) listener->OnDurable(events, *brain_);
}

}  // namespace attune::server
