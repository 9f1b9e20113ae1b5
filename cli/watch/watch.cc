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
constexpr std::chrono::seconds kRefreshPeriod{1};      // after something happened
constexpr std::chrono::seconds kIdleRefreshPeriod{5};  // no event gives the waiting reason
constexpr std::chrono::seconds kGiveUpAfter{60};
// For the events before a sweep's end, once REST has told the end.
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
using Letter = std::variant<Opened, ServerEvent, Lost, Refused>;

class Watcher {
 public:
  Watcher(Api& api, const WatchOptions& options, Progress& progress)
      : api_(api), options_(options), progress_(progress) {}

  Result<WatchEnd> Run(Interrupt& interrupt) {
    // Before the stream, so that a wrong id or token is told as such.
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
    while (!Over(Clock::now())) {
      for (Letter& letter : mailbox_.TakeUntil(Clock::now() + kTick)) {
        if (Status read = std::visit([this](auto& l) { return Take(l); }, letter); !read.ok()) {
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
      if (!*refreshed || !options_.executors_are_fixed || model_.stuck().empty()) continue;
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

  // REST may tell the end of a sweep before the stream has told what led to it.
  bool Over(Clock::time_point now) {
    if (!model_.ended()) return false;
    if (end_told_) return true;
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

  // Whether the model is new.
  Result<bool> Refresh(Clock::time_point now) {
    const auto period = changed_ ? Clock::duration(kRefreshPeriod) : kIdleRefreshPeriod;
    if (lost_since_.has_value() || now - refreshed_ < period) return false;
    refreshed_ = now;
    changed_ = false;
    const auto sweep = api_.Sweep(options_.sweep);
    if (sweep.ok()) model_.Refresh(*sweep);
    // Without an answer the stream will be lost too, and says so.
    if (!sweep.ok() && sweep.error().code != ErrorCode::kUnavailable) return sweep.error();
    return sweep.ok();
  }

  // Whether the sweep's next gang can start on an executor that is connected. While none is, one
  // is about to be.
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

  Status Take(const Opened& opened) {
    if (lost_since_.has_value()) progress_.Note("connected again");
    lost_since_.reset();
    if (!opened.gap) return {};
    const Status read = Reread();
    if (!read.ok() && read.error().code != ErrorCode::kUnavailable) return read;
    return {};
  }

  Status Take(const ServerEvent& event) {
    changed_ = true;
    if (IsOfAnotherRun(event)) return {};
    if (event.kind != "executor_changed") begun_ = true;
    model_.Apply(event);
    if (event.kind == "sweep_changed" && model_.ended()) end_told_ = true;
    progress_.OnEvent(event, model_);
    return {};
  }

  bool IsOfAnotherRun(const ServerEvent& event) const {
    if (event.kind != "executor_changed" || !options_.from_start) return false;
    const EventData data = ReadEvent(event);
    const std::optional<double> time = ParseTime(data.time);
    if (time.has_value() && *time < options_.executors_since) return true;
    // A server that starts finds the executors of the last run lost.
    return !begun_ && data.state == "lost";
  }

  Status Take(const Lost& lost) {
    if (!lost_since_.has_value()) {
      lost_since_ = Clock::now();
      progress_.Note("the connection to the server is lost; trying again");
    }
    lost_because_ = lost.error;
    return {};
  }

  Status Take(const Refused& refused) { return refused.error; }

  Api& api_;
  const WatchOptions& options_;
  Progress& progress_;
  SweepModel model_;
  Mailbox<Letter> mailbox_;
  Clock::time_point refreshed_ = Clock::now();
  bool changed_ = false;
  bool begun_ = false;     // an event of the sweep itself has come
  bool end_told_ = false;  // by an event
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
