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
constexpr uint64_t kProgressEvents = 4096;  // progress is reported after this many events

const Error kStopping{ErrorCode::kUnavailable, "the server is stopping"};

// Ends the process at once, without destructors, because what they say or write may be wrong.
void EndProcess(const Error& why) {
  logging::Critical("the server ends: {}; start it again, and it continues from the state on disk",
                    why.message);
  logging::Shutdown();
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

Conductor::Conductor(const Algorithms& algorithms, EventStore& store, Clock clock, Fatal fatal)
    : algorithms_(algorithms),
      clock_(std::move(clock)),
      fatal_(fatal ? std::move(fatal) : EndProcess),
      machine_({.make_decider = [this] { return MakeBrainDecider(algorithms_, reachable_); },
                .store = &store}) {
  machine_.Subscribe(this);
}

Conductor::~Conductor() { Stop(); }

Status Conductor::Start() {
  const auto read = [this](EventSeq seq, EventSeq last) {
    if (seq.value % kProgressEvents == 0)
      SetStartProgress("it has read event", seq.value, last.value);
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

// ---- Requests -------------------------------------------------------------------------------

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

void Conductor::Post(StateReader look) { Push({.look = std::move(look)}); }

void Conductor::CheckForStarts() { Push({}); }

std::vector<Result<std::vector<Event>>> Conductor::Execute(std::vector<Command> commands,
                                                           std::string actor,
                                                           const Callback& after) {
  using Answer = Result<std::vector<Event>>;
  {
    std::lock_guard lock(mutex_);
    if (queue_.full())
      return {commands.size(),
              Answer(Error{ErrorCode::kUnavailable,
                           "too many commands are waiting; try again in a moment"})};
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

void Conductor::Query(const StateReader& look) {
  if (PushAndWait({.look = look})) return;
  // The conductor stops. Once its thread has ended, nothing changes any more.
  std::unique_lock lock(mutex_);
  durable_.wait(lock, [this] { return !running_; });
  if (started_) return look(machine_.brain());
  look(Brain(algorithms_, reachable_));
}

// The look owns the promise, so a dropped look breaks the promise and ends the wait.
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

// ---- State for others -----------------------------------------------------------------------

Status Conductor::Started() const {
  std::lock_guard lock(mutex_);
  if (started_) return {};
  return Error{ErrorCode::kUnavailable, starting_ + "; try again in a moment"};
}

void Conductor::SetStartProgress(const std::string& step, uint64_t done, uint64_t total) {
  std::lock_guard lock(mutex_);
  starting_ = "the server is starting: " + step + " " + std::to_string(done) + " of " +
              std::to_string(total);
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
      logging::Warn("{}: displayed times follow the clock; deadlines do not change",
                    adjusted->reason);
  }
}

void Conductor::OnState(EventSeq durable, const Status& writable) {
  std::lock_guard lock(mutex_);
  durable_seq_ = durable;
  writable_ = writable;
  durable_.notify_all();
}

// ---- The thread -----------------------------------------------------------------------------

void Conductor::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    durable_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  // The thread may have ended early, because the log could not be read.
  while (!queue_.empty()) {
    for (Submission& submission : queue_.TakeBatch()) Refuse(std::move(submission));
  }
}

void Conductor::Run() {
  bool has_background_work = true;
  for (;;) {
    std::vector<Submission> batch;
    const Time now = clock_();
    const std::optional<Time> next = machine_.NextStep(now);
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] { return !queue_.empty() || stopping_; };
      if (has_background_work && !ready() && (!next || *next > now)) {
        lock.unlock();
        has_background_work = machine_.DoBackgroundWork();
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
    if (wall_clock_) machine_.SetWallClockOffset(wall_clock_().us - clock_().us);
    if (const Status whole = machine_.Step(std::move(batch), clock_()); !whole.ok())
      return fatal_(whole.error());
    has_background_work = true;
  }
  machine_.SaveSnapshot();
}

}  // namespace attune::server
