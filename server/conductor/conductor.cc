#include "server/conductor/conductor.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>

#include "base/result.h"
#include "logging/log.h"

namespace attune::server {
namespace {

constexpr std::chrono::microseconds kTimerMin{1'000};
constexpr uint64_t kProgressEvents = 4096;  // read between two words about how far it is

const Error kStopping{ErrorCode::kUnavailable, "the server is stopping"};

// Nothing of this process may be said any more, not even by the destructors of what lives in it.
void EndProcess(const Error& why) {
  logging::Critical("the server ends: {}; what is on disk decides at its next start", why.message);
  logging::Shutdown();
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

Conductor::Conductor(const Algorithms& algorithms, EventStore& store, Clock clock, Fatal fatal)
    : algorithms_(algorithms),
      clock_(std::move(clock)),
      fatal_(fatal ? std::move(fatal) : EndProcess),
      machine_({.make_mind = [this] { return MakeBrainMind(algorithms_, reachable_); },
                .store = &store}) {
  machine_.Subscribe(this);
}

Conductor::~Conductor() { Stop(); }

Status Conductor::Start() {
  const auto read = [this](EventSeq seq, EventSeq last) {
    if (seq.value % kProgressEvents == 0) TellStarting("it has read", seq.value, last.value);
  };
  if (Status started = machine_.Start(clock_(), read); !started.ok()) return started;
  running_ = true;
  thread_ = std::thread([this] {
    Run();
    std::lock_guard lock(mutex_);
    running_ = false;
    durable_.notify_all();
  });
  return {};
}

// ---- what comes in --------------------------------------------------------------------------

void Conductor::Submit(Command command, Done done) {
  Submission submission{.done = std::move(done)};
  submission.commands.push_back(std::move(command));
  Push(std::move(submission));
}

void Conductor::Record(std::vector<Command> facts, Stored stored) {
  Push({.commands = std::move(facts), .stored = std::move(stored)});
}

void Conductor::RecordEnds(std::vector<Command> facts) {
  Push({.commands = std::move(facts), .ends_only = true});
}

void Conductor::Post(Look look) { Push({.look = std::move(look)}); }

void Conductor::Nudge() { Push({}); }

std::vector<Result<std::vector<Event>>> Conductor::Execute(std::vector<Command> commands,
                                                           std::string actor, const After& after) {
  using Answer = Result<std::vector<Event>>;
  {
    std::lock_guard lock(mutex_);
    if (queue_.full())
      return {commands.size(), Answer(Error{ErrorCode::kUnavailable,
                                            "more waits than can be decided now: try again in a "
                                            "moment"})};
  }
  std::vector<Answer> answers;
  Submission submission{.commands = std::move(commands), .actor = std::move(actor)};
  submission.done = [&](const Result<std::span<const Event>>& result) {
    if (result.ok()) {
      answers.emplace_back(std::vector<Event>(result->begin(), result->end()));
    } else {
      answers.emplace_back(result.error());
    }
  };
  submission.look = [&](const Brain& brain) {
    for (const Answer& answer : answers) {
      if (answer.ok() && after) after(*answer, brain);
    }
  };
  PushAndWait(std::move(submission));
  return answers;
}

Result<std::vector<Event>> Conductor::Execute(Command command) {
  std::vector<Command> one;
  one.push_back(std::move(command));
  return std::move(Execute(std::move(one), "", {}).front());
}

void Conductor::Query(const Look& look) {
  if (PushAndWait({.look = look})) return;
  // It stops: nothing will change any more once its thread has ended.
  std::unique_lock lock(mutex_);
  durable_.wait(lock, [this] { return !running_; });
  if (started_) return look(machine_.brain());
  look(Brain(algorithms_, reachable_));
}

// The promise goes with the look, and breaks where that is dropped.
bool Conductor::PushAndWait(Submission submission) {
  bool has_looked = false;
  auto promise = std::make_shared<std::promise<void>>();
  const auto done = promise->get_future();
  submission.look = [&has_looked, look = std::move(submission.look),
                     told = std::exchange(promise, nullptr)](const Brain& brain) {
    look(brain);
    has_looked = true;
    told->set_value();
  };
  Push(std::move(submission));
  done.wait();
  return has_looked;
}

void Conductor::Push(Submission submission) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      queue_.Push(std::move(submission));
      wake_.notify_one();
      return;
    }
  }
  Refuse(std::move(submission));
}

void Conductor::Refuse(Submission submission) {
  if (submission.done) {
    for (size_t i = 0; i < submission.commands.size(); ++i) submission.done(kStopping);
  }
  if (submission.stored) submission.stored(kStopping);
}

// ---- what is known of it --------------------------------------------------------------------

Status Conductor::Started() const {
  std::lock_guard lock(mutex_);
  if (started_) return {};
  return Error{ErrorCode::kUnavailable, starting_ + "; try again in a moment"};
}

void Conductor::TellStarting(const std::string& what, uint64_t done, uint64_t total) {
  std::lock_guard lock(mutex_);
  starting_ = "the server is starting: " + what + " " + std::to_string(done) + " of the " +
              std::to_string(total) + " events of its log";
}

Status Conductor::Ready() const {
  if (Status started = Started(); !started.ok()) return started;
  std::lock_guard lock(mutex_);
  return stopping_ ? Status(kStopping) : writable_;
}

EventSeq Conductor::WaitForEvents(EventSeq seq, int timeout_ms) const {
  std::unique_lock lock(mutex_);
  durable_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                    [&] { return durable_seq_ > seq || stopping_; });
  return durable_seq_;
}

void Conductor::OnStarted(const Brain&) {
  std::lock_guard lock(mutex_);
  started_ = true;
}

void Conductor::OnDurable(std::span<const Event> events, const Brain&) {
  for (const Event& event : events) {
    if (const auto* adjusted = std::get_if<ClockAdjusted>(&event.fact))
      logging::Warn("{}: what is shown follows the clock, and no deadline moves", adjusted->reason);
  }
}

void Conductor::OnState(EventSeq durable, const Status& writable) {
  std::lock_guard lock(mutex_);
  durable_seq_ = durable;
  writable_ = writable;
  durable_.notify_all();
}

// ---- the thread -----------------------------------------------------------------------------

void Conductor::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    durable_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  // What was queued by whoever did not know that the log could not be read.
  while (!queue_.empty()) {
    for (Submission& submission : queue_.TakeBatch()) Refuse(std::move(submission));
  }
}

void Conductor::Run() {
  bool untidy = true;
  for (;;) {
    std::vector<Submission> batch;
    const Time now = clock_();
    const std::optional<Time> next = machine_.NextStep(now);
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] { return !queue_.empty() || stopping_; };
      if (untidy && !ready() && (!next || *next > now)) {
        lock.unlock();
        untidy = machine_.Tidy();
        continue;
      }
      if (!next) {
        wake_.wait(lock, ready);
      } else if (*next > now) {
        wake_.wait_for(lock, std::max(std::chrono::microseconds(next->us - now.us), kTimerMin),
                       ready);
      }
      if (queue_.empty() && stopping_) break;
      batch = queue_.TakeBatch();
    }
    if (wall_clock_) machine_.OnWallClock(wall_clock_().us - clock_().us);
    if (const Status whole = machine_.Step(std::move(batch), clock_()); !whole.ok())
      return fatal_(whole.error());
    untidy = true;
  }
  machine_.SaveSnapshot();
}

}  // namespace attune::server
