#include "core/brain/next_trial.h"

#include <utility>

namespace attune {
namespace {

Fact Assign(const State& state, const Sweep& sweep, const Trial& trial, std::vector<RankSlot> ranks,
            const std::string& idempotency_key) {
  AttemptAssigned fact{.attempt = {trial.id, trial.attempts + 1},
                       .epoch = Epoch(state.last_epoch.value + 1),
                       .ranks = std::move(ranks),
                       .idempotency_key = idempotency_key};
  if (const KeptCheckpoint* source = trial.Source()) fact.resume = source->ref;
  // A milestone that was set and not reached still holds; a fresh or promoted trial gets its next.
  fact.milestone =
      trial.milestone.value > 0 ? trial.milestone : NextMilestone(sweep, trial, trial.last_step);
  return fact;
}

// The next configuration; nullopt when the searcher has none.
std::optional<TrialCreated> Propose(const Sweep& sweep) {
  const TrialId id(sweep.id, TrialNumber(static_cast<uint32_t>(sweep.created)));
  const auto& points = sweep.spec.initial_points;
  const auto used = static_cast<size_t>(sweep.points_used);
  if (used < points.size())
    return TrialCreated{.trial = id, .config = points[used], .origin = std::string(kInitialPoints)};
  auto config = sweep.searcher->Suggest(id.number);
  if (!config) return std::nullopt;
  return TrialCreated{
      .trial = id, .config = *std::move(config), .origin = sweep.spec.searcher.name};
}

}  // namespace

bool MayStart(const Sweep& sweep) {
  return sweep.state == SweepState::kRunning &&
         (sweep.spec.max_concurrent_trials == 0 ||
          std::ssize(sweep.live) < sweep.spec.max_concurrent_trials);
}

bool MayCreate(const Sweep& sweep) {
  return !sweep.stopping_as && !sweep.exhausted &&
         (sweep.spec.stop.max_trials == 0 || sweep.created < sweep.spec.stop.max_trials);
}

const Trial* NextWaiting(const Sweep& sweep, Time now) {
  for (TrialNumber number : sweep.pending) {
    const Trial* trial = sweep.Find(number);
    if (trial->not_before <= now) return trial;
  }
  if (sweep.Count(TrialState::kPaused) == 0 || sweep.stopping_as) return nullptr;
  const auto promoted = sweep.scheduler->Promote();
  const Trial* trial = promoted ? sweep.Find(*promoted) : nullptr;
  if (trial == nullptr || trial->state != TrialState::kPaused || trial->live) return nullptr;
  return trial;
}

void StartNext(const State& state, const Sweep& sweep, std::vector<RankSlot> ranks,
               const std::string& idempotency_key, Time now, Facts& facts) {
  if (const Trial* waiting = NextWaiting(sweep, now)) {
    facts.push_back(Assign(state, sweep, *waiting, std::move(ranks), idempotency_key));
    return;
  }
  auto created = Propose(sweep);
  if (!created) {
    facts.push_back(SearchExhausted{sweep.id});
    return;
  }
  const Trial fresh{.id = created->trial, .config = created->config};
  facts.push_back(*std::move(created));
  facts.push_back(Assign(state, sweep, fresh, std::move(ranks), idempotency_key));
}

}  // namespace attune
