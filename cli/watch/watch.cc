#include "cli/watch/watch.h"

#include <algorithm>
#include <variant>

#include "base/result.h"
#include "cli/text/numbers.h"
#include "cli/watch/event_data.h"
#include "system/mailbox.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::seconds kRefreshPeriod{1};      // after an event
constexpr std::chrono::seconds kIdleRefreshPeriod{5};  // no event reports the waiting reason
constexpr std::chrono::seconds kGiveUpAfter{60};
// Time for the last events to arrive after REST has reported the end.
constexpr std::chrono::seconds kLastEventsWait{2};

struct Opened {
  bool gap;
};
struct Lost {
  Error error;
};
struct Refused {
  Error error;
};
using Message = std::variant<Opened, ServerEvent, Lost, Refused>;

class Watcher {
 public:
  Watcher(Api& api, const WatchOptions& options, Progress& progress)
      : api_(api), options_(options), progress_(progress) {}

  Result<WatchEnd> Run(Interrupt& interrupt) {
    // Reads over REST first, whose errors for a wrong id or token are clear.
    if (Status read = Reread(); !read.ok()) return read.error();
    if (model_.ended() && !options_.from_start) return Finish(WatchEnd::kSweepEnded);
    const Interrupt::Subscription wake(interrupt, [this] { mailbox_.Wake(); });
    const std::optional<uint64_t> after =
        options_.from_start ? std::optional<uint64_t>(0) : std::nullopt;
    const EventStream stream(
        api_.endpoint(), options_.sweep, after,
        {.on_open = [this](bool gap) { mailbox_.Post(Opened{gap}); },
         .on_event = [this](ServerEvent event) { mailbox_.Post(std::move(event)); },
         .on_lost = [this](const Error& error) { mailbox_.Post(Lost{error}); },
         .on_refused = [this](const Error& error) { mailbox_.Post(Refused{error}); }});

    const auto started = Clock::now();
    while (!IsFinished(Clock::now())) {
      for (Message& message : mailbox_.TakeUntil(Clock::now() + kTick)) {
        if (Status read = std::visit([this](auto& content) { return Handle(content); }, message);
            !read.ok()) {
          return read.error();
        }
      }
      const auto now = Clock::now();
      if (interrupt.requested()) return Finish(WatchEnd::kInterrupted);
      if (lost_since_.has_value() && now - *lost_since_ > kGiveUpAfter) return *lost_because_;
      if (options_.timeout.has_value() && now - started > *options_.timeout) {
        return Finish(WatchEnd::kTimedOut);
      }
      const Result<bool> refreshed = Refresh(now);
      if (!refreshed.ok()) return refreshed.error();
      progress_.Tick(model_, now);
      if (!*refreshed || !options_.executors_are_fixed || model_.idle_reason().empty()) continue;
      const Result<bool> can_start = CanStart();
      if (!can_start.ok()) return can_start.error();
      if (!*can_start) return Finish(WatchEnd::kCannotStart);
    }
    return Finish(WatchEnd::kSweepEnded);
  }

 private:
  WatchEnd Finish(WatchEnd end) {
    progress_.Finish(model_);
    return end;
  }

  // Whether the watch is over. REST may report the end before the stream delivers the last events.
  bool IsFinished(Clock::time_point now) {
    if (!model_.ended()) return false;
    if (end_event_seen_) return true;
    if (!ended_since_.has_value()) ended_since_ = now;
    return now - *ended_since_ > kLastEventsWait;
  }

  Status Reread() {
    const auto sweep = api_.Sweep(options_.sweep);
    if (!sweep.ok()) return sweep.error();
    const auto trials = api_.Trials(options_.sweep);
    if (!trials.ok()) return trials.error();
    model_.Reset(*sweep, trials->trials);
    return {};
  }

  // Reads the sweep again if it is time. Returns whether the model was updated.
  Result<bool> Refresh(Clock::time_point now) {
    const auto period = changed_ ? Clock::duration(kRefreshPeriod) : kIdleRefreshPeriod;
    if (lost_since_.has_value() || now - refreshed_ < period) return false;
    refreshed_ = now;
    changed_ = false;
    const auto sweep = api_.Sweep(options_.sweep);
    if (sweep.ok()) model_.Refresh(*sweep);
    // If the server does not answer, the stream breaks too and reports that.
    if (!sweep.ok() && sweep.error().code != ErrorCode::kUnavailable) return sweep.error();
    return sweep.ok();
  }

  // Whether the sweep's next gang can start on a connected executor. True while none is connected,
  // because one will connect soon.
  Result<bool> CanStart() {
    const auto executors = api_.Executors();
    if (!executors.ok()) return executors.error();
    const bool connected = std::ranges::any_of(
        executors->executors, [](const rest::Executor& each) { return each.state != "lost"; });
    if (!connected) return true;
    const auto demand = api_.Demand();
    if (!demand.ok()) return demand.error();
    return std::ranges::none_of(demand->demand, [this](const rest::Demand& each) {
      return each.sweep == options_.sweep && !each.can_start;
    });
  }

  Status Handle(const Opened& opened) {
    if (lost_since_.has_value()) progress_.Note("reconnected to the server");
    lost_since_.reset();
    if (!opened.gap) return {};
    const Status read = Reread();
    if (!read.ok() && read.error().code != ErrorCode::kUnavailable) return read;
    return {};
  }

  Status Handle(const ServerEvent& event) {
    changed_ = true;
    if (IsFromAnotherRun(event)) return {};
    if (event.kind != "executor_changed") begun_ = true;
    model_.Apply(event);
    if (event.kind == "sweep_changed" && model_.ended()) end_event_seen_ = true;
    progress_.OnEvent(event, model_);
    return {};
  }

  bool IsFromAnotherRun(const ServerEvent& event) const {
    if (event.kind != "executor_changed" || !options_.from_start) return false;
    const EventData data = ReadEvent(event);
    const std::optional<double> time = ParseTime(data.time);
    if (time.has_value() && *time < options_.executors_since) return true;
    // A restarted server reports the executors of the last run as lost.
    return !begun_ && data.state == "lost";
  }

  Status Handle(const Lost& lost) {
    if (!lost_since_.has_value()) {
      lost_since_ = Clock::now();
      progress_.Note("lost the connection to the server; retrying");
    }
    lost_because_ = lost.error;
    return {};
  }

  Status Handle(const Refused& refused) { return refused.error; }

  Api& api_;
  const WatchOptions& options_;
  Progress& progress_;
  SweepModel model_;
  Mailbox<Message> mailbox_;
  Clock::time_point refreshed_ = Clock::now();
  bool changed_ = false;
  bool begun_ = false;  // an event of the sweep itself has arrived
  bool end_event_seen_ = false;
  std::optional<Clock::time_point> ended_since_;
  std::optional<Clock::time_point> lost_since_;
  std::optional<Error> lost_because_;
};

}  // namespace

Result<WatchEnd> WatchSweep(Api& api, const WatchOptions& options, Progress& progress,
                            Interrupt& interrupt) {
  return Watcher(api, options, progress).Run(interrupt);
}

}  // namespace attune::cli
