#include "core/brain/queue.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "core/brain/agenda.h"
#include "core/brain/contention.h"
#include "core/brain/next_trial.h"

namespace attune {
namespace {

// An entry of the queue.
struct Queued {
  const Sweep* sweep = nullptr;
  const Trial* trial = nullptr;  // null: a trial that the sweep creates next
  bool ready = false;            // as in QueuedGang
};

// The trials of a sweep that wait.
struct Waiters {
  const Sweep* sweep = nullptr;
  std::vector<const Trial*> ready;  // in the order in which they start
  std::vector<const Trial*> others;
  size_t next = 0;  // the next ready one
  Occupied used;    // by the sweep, with the gangs that are in the queue before
};

Occupied SizeOf(const GangSpec& gang) {
  const Resources& each = gang.per_worker;
  return {.cpus = gang.workers * each.cpus,
          .gpu_percent = int64_t{gang.workers} * each.gpus * gang.gpu_percent,
          .memory_bytes = gang.workers * each.memory_bytes};
}

Waiters WaitersOf(const Sweep& sweep, Time now) {
  Waiters waiters{.sweep = &sweep, .used = sweep.used};
  size_t may_start = sweep.spec.External() || sweep.state != SweepState::kRunning
                         ? 0
                         : std::numeric_limits<size_t>::max();
  if (const int most = sweep.spec.max_concurrent_trials; may_start > 0 && most > 0)
    may_start = static_cast<size_t>(std::max<int64_t>(0, most - std::ssize(sweep.live)));
  for (const TrialNumber number : sweep.pending) {
    const Trial* trial = sweep.Find(number);
    const bool ready = !trial->live && trial->not_before <= now && waiters.ready.size() < may_start;
    (ready ? waiters.ready : waiters.others).push_back(trial);
  }
  const SkippedTrials pending(sweep.pending.begin(), sweep.pending.end());
  if (waiters.ready.size() < may_start && HasNext(sweep, now, pending))
    waiters.ready.push_back(NextWaiting(sweep, now, pending));
  return waiters;
}

// Puts the ready trials of all sweeps in order.
class Order {
 public:
  explicit Order(const State& state) : state_(state) {
    for (const auto& [name, executor] : state.executors) {
      if (!executor.lost) Add(AllOf(executor.host.total), 1, total_);
    }
    for (const auto& [id, sweep] : state.sweeps) Add(sweep.used, 1, owners_[sweep.owner]);
  }

  void Push(Waiters& waiters) {
    if (waiters.next < waiters.ready.size()) line_.emplace(TurnOf(waiters), &waiters);
  }

  // The next gang; nullopt at the end. Shares only grow, so a turn that is out of date is too early
  // in the line, and the sweep is put back.
  std::optional<Queued> Next() {
    while (!line_.empty()) {
      const auto [turn, waiters] = line_.top();
      line_.pop();
      if (turn != TurnOf(*waiters)) {
        Push(*waiters);
        continue;
      }
      const Trial* trial = waiters->ready[waiters->next++];
      const Occupied size = SizeOf(waiters->sweep->spec.gang);
      Add(size, 1, waiters->used);
      Add(size, 1, owners_[waiters->sweep->owner]);
      Push(*waiters);
      return Queued{waiters->sweep, trial, true};
    }
    return std::nullopt;
  }

  double ShareOfOwner(const Sweep& sweep) const { return ShareOf(owners_.at(sweep.owner)); }
  double ShareOf(const Occupied& used) const { return DominantShare(used, total_); }

 private:
  // As in Agenda::Line.
  using Turn = std::tuple<int, bool, double, double, SweepId>;

  Turn TurnOf(const Waiters& waiters) const {
    const Sweep& sweep = *waiters.sweep;
    const bool reserves = state_.reservation && state_.reservation->sweep == sweep.id;
    return {-sweep.spec.priority, !reserves, ShareOf(owners_.at(sweep.owner)),
            ShareOf(waiters.used), sweep.id};
  }

  using Entry = std::pair<Turn, Waiters*>;
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return a.first > b.first; }
  };

  const State& state_;
  Occupied total_;
  std::map<std::string, Occupied> owners_;
  std::priority_queue<Entry, std::vector<Entry>, Later> line_;
};

}  // namespace

GangQueue Queue(const State& state, const Reachable& reachable, Time now, size_t first,
                size_t limit) {
  GangQueue queue;
  std::vector<Waiters> all;
  for (const auto& [id, sweep] : state.sweeps) {
    Waiters waiters = WaitersOf(sweep, now);
    queue.total += std::ssize(waiters.ready) + std::ssize(waiters.others);
    if (!waiters.ready.empty() || !waiters.others.empty()) all.push_back(std::move(waiters));
  }
  const size_t end = std::min(kQueueEntriesMax, first + std::min(limit, kQueueEntriesMax));

  std::vector<Queued> entries;
  Order order(state);
  for (Waiters& waiters : all) order.Push(waiters);
  while (entries.size() < end) {
    const auto next = order.Next();
    if (!next) break;
    entries.push_back(*next);
  }
  for (const Waiters& waiters : all) {
    for (const Trial* trial : waiters.others) {
      if (entries.size() < end) entries.push_back({waiters.sweep, trial, false});
    }
  }

  const Order shares(state);
  for (size_t i = first; i < entries.size(); ++i) {
    const auto& [sweep, trial, ready] = entries[i];
    QueuedGang gang{.sweep = sweep->id,
                    .ready = ready,
                    .priority = sweep->spec.priority,
                    .share = shares.ShareOfOwner(*sweep),
                    .sweep_share = shares.ShareOf(sweep->used)};
    if (trial != nullptr) {
      gang.trial = trial->id.number;
      gang.not_before = trial->not_before;
    } else {
      const int known = static_cast<int>(std::ranges::count_if(
          sweep->pending, [&](TrialNumber n) { return sweep->Find(n)->not_before <= now; }));
      gang.gangs = std::max(1, GangsToStart(*sweep, now) - known);
    }
    // A paused trial is in the queue because the scheduler promotes it.
    gang.reason = trial != nullptr && trial->state == TrialState::kPending
                      ? Waiting(state, *trial, reachable, now)
                      : DescribeShortage(state, *sweep, trial, reachable, now);
    if (gang.reason.empty()) gang.reason = "waits for its turn";
    queue.gangs.push_back(std::move(gang));
  }
  return queue;
}

}  // namespace attune
