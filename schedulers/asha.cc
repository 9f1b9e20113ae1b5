#include "schedulers/asha.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/result.h"
#include "schedulers/extrapolation.h"
#include "schedulers/progression.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

Ladder::Options LadderOptions(const SweepSpec& spec) {
  const auto& options = spec.scheduler.options;
  const auto brackets = options.find("brackets");
  return {.min = Step(std::get<int64_t>(options.at("min"))),
          .max = spec.max_step,
          .reduction_factor = std::get<int64_t>(options.at("reduction_factor")),
          .brackets = brackets == options.end() ? 1 : std::get<int64_t>(brackets->second),
          .seed = spec.seed};
}

Asha::Form FormOf(const SweepSpec& spec) {
  const auto mode = spec.scheduler.options.find("mode");
  const bool stops =
      mode != spec.scheduler.options.end() && std::get<std::string>(mode->second) == "stop";
  return stops ? Asha::Form::kStop : Asha::Form::kPromote;
}

// A scheduler with the ranking that `rank` makes for the ladder.
Result<std::unique_ptr<Scheduler>> MakeAsha(
    const SweepSpec& spec, std::unique_ptr<Ranking> (*rank)(const Ladder& ladder)) {
  const Ladder::Options options = LadderOptions(spec);
  if (options.max == Step(0)) return MissingMax(spec.scheduler.name);
  if (options.min >= options.max) {
    return Error{ErrorCode::kInvalid, "scheduler.min: " + Text(options.min) + " is not below max " +
                                          Text(options.max) +
                                          ", so no trial would stop early; lower min or raise max"};
  }
  if (const int64_t rungs = options.RungsBelowMax(); options.brackets > rungs) {
    return Error{ErrorCode::kInvalid, "scheduler.brackets: " + std::to_string(options.brackets) +
                                          " are more than the " + std::to_string(rungs) +
                                          " rungs below max; use fewer brackets, or raise max"};
  }
  Ladder ladder(options);
  auto ranking = rank(ladder);
  return {std::make_unique<Asha>(spec.objective(), std::move(ladder), FormOf(spec),
                                 std::move(ranking), spec.scheduler.name)};
}

}  // namespace

template <class A>
void Fields(A& archive, Like<A, Asha::Record>& record) {
  archive(record.trial, record.step, record.value, record.best_cost);
}

Asha::Asha(Objective objective, Ladder ladder, Form form, std::unique_ptr<Ranking> ranking,
           std::string rule)
    : objective_(std::move(objective)),
      ladder_(std::move(ladder)),
      form_(form),
      ranking_(std::move(ranking)),
      rule_(std::move(rule)) {
  Rebuild();
}

std::string Asha::RuleOf(TrialNumber trial) const {
  if (ladder_.brackets() == 1) return rule_;
  return rule_ + ", bracket " + std::to_string(ladder_.BracketOf(trial) + 1);
}

// ---- rungs ---------------------------------------------------------------------------------

size_t Asha::NextRung(TrialNumber trial) const {
  const auto last = last_.find(trial);
  return last == last_.end() ? ladder_.BracketOf(trial) : last->second.rung + 1;
}

std::optional<size_t> Asha::RungFor(TrialNumber trial, Step step) const {
  const size_t count = ladder_.CountUpTo(step);
  if (count <= NextRung(trial)) return std::nullopt;
  return count - 1;
}

Rung::Mark Asha::MarkFor(TrialNumber trial, size_t rung, double value) const {
  const Ranking::Score score = ranking_->ScoreOf(trial, rung, CostOf(value));
  const bool finite = std::isfinite(score.cost);
  return {.key = {.cost = finite ? score.cost : std::numeric_limits<double>::infinity(),
                  .order = RungsOf(trial)[rung].size()},
          .value = CostOf(score.cost),
          .spread = score.spread};
}

bool Asha::IsOpen(const Rung& rung) const {
  return rung.step() < ladder_.max() && rung.step() < ranking_->Limit();
}

std::optional<Step> Asha::NextMilestone(const TrialView& trial, Step after) const {
  const size_t next = std::max(NextRung(trial.id.number), ladder_.CountUpTo(after));
  if (next == ladder_.steps().size()) return std::nullopt;
  return ladder_.steps()[next];
}

// ---- verdicts ------------------------------------------------------------------------------

Verdict Asha::Judge(const TrialView& trial, const Report& report) const {
  const TrialNumber number = trial.id.number;
  const auto index = RungFor(number, report.step);
  if (!index) {
    return NothingDecided(RuleOf(number), report.step, NextMilestone(trial, report.step), "rung",
                          "it has passed the last rung");
  }
  const double value = objective_.ValueIn(report.metrics);
  const Rung& rung = RungsOf(number)[*index];
  const Rung::Mark mark = MarkFor(number, *index, value);
  const Rung::Standing standing = rung.StandingOf(mark, ladder_.reduction_factor());
  const bool last = rung.step() == ladder_.max();
  const bool spoiled = form_ == Form::kPromote && !std::isfinite(value);
  const VerdictKind kind = last      ? VerdictKind::kContinue
                           : spoiled ? VerdictKind::kStop
                                     : Decide(number, rung, mark, standing);

  const bool reported = report.metrics.contains(objective_.metric);
  Reason reason = ReasonFor(number, rung, standing, mark.value);
  reason.step = report.step;
  reason.text =
      std::string(last                          ? "completes"
                  : kind == VerdictKind::kStop  ? "stopped"
                  : kind == VerdictKind::kPause ? "paused"
                                                : "continues") +
      " at step " + Text(report.step) + ": " +
      StandingText(rung, standing, mark, reported ? FormatShort(value) : "(not reported)") +
      (last      ? ", the last"
       : spoiled ? "; a value that is not finite is never promoted"
                 : RuleText(rung, standing));
  return {.kind = kind, .reason = std::move(reason)};
}

VerdictKind Asha::Decide(TrialNumber trial, const Rung& rung, const Rung::Mark& mark,
                         const Rung::Standing& standing) const {
  const bool among_best = standing.rank <= standing.continuing;
  if (form_ == Form::kPromote) {
    const bool promoted = among_best && IsNextAt(rung, mark, trial);
    return promoted ? VerdictKind::kContinue : VerdictKind::kPause;
  }
  return among_best || standing.continuing == 0 ? VerdictKind::kContinue : VerdictKind::kStop;
}

bool Asha::IsNextAt(const Rung& rung, const Rung::Mark& mark, TrialNumber trial) const {
  if (!IsOpen(rung)) return false;
  if (last_.size() + (last_.contains(trial) ? 0 : 1) < ranking_->TrialsMin()) return false;
  if (!rung.paused().empty() && rung.paused().begin()->first < mark.key) return false;
  for (const auto& bracket : rungs_) {
    for (const Rung& higher : bracket) {
      if (higher.step() <= rung.step() || !IsOpen(higher) || higher.paused().empty()) continue;
      if (higher.IsAmongBest(higher.paused().begin()->first, ladder_.reduction_factor()))
        return false;
    }
  }
  return true;
}

Reason Asha::ReasonFor(TrialNumber trial, const Rung& rung, const Rung::Standing& standing,
                       double value) const {
  return {.rule = RuleOf(trial),
          .rung = rung.step(),
          .value = value,
          .cutoff = standing.cutoff,
          .rank = standing.rank,
          .peers = standing.peers};
}

std::string Asha::StandingText(const Rung& rung, const Rung::Standing& standing,
                               const Rung::Mark& mark, const std::string& value) const {
  const std::string place = "rank " + std::to_string(standing.rank) + " of " +
                            std::to_string(standing.peers) + " at rung " + Text(rung.step());
  if (!mark.spread) return objective_.metric + " " + value + " is " + place;
  return objective_.metric + " " + value + " is predicted to reach " + FormatShort(mark.value) +
         " ± " + SpreadText(*mark.spread) + " at step " + Text(ladder_.max()) + ", " + place;
}

std::string Asha::RuleText(const Rung& rung, const Rung::Standing& standing) const {
  if (!IsOpen(rung)) return "; " + ranking_->LimitReason();
  if (standing.continuing == 0) {
    return (form_ == Form::kStop ? "; none is stopped before " : "; none continues before ") +
           std::to_string(ladder_.reduction_factor()) + " have reached it";
  }
  const std::string continuing =
      standing.continuing == 1 ? "only the best continues"
                               : "the best " + std::to_string(standing.continuing) + " continue";
  return "; " + continuing + " (cutoff " + FormatShort(standing.cutoff) + ")";
}

// ---- promotions ----------------------------------------------------------------------------

NextMove Asha::Next(const SweepView& sweep) const {
  for (const TrialNumber trial : paused_below_) {
    if (!sweep.paused.contains(trial)) continue;
    const Step first = ladder_.steps()[ladder_.BracketOf(trial)];
    return Promote{.trial = trial,
                   .reason = {.rule = RuleOf(trial),
                              .text = "continues: it was paused before rung " + Text(first) +
                                      ", which is now the first"}};
  }
  if (last_.size() < ranking_->TrialsMin() && sweep.may_create) return StartNew{};
  if (const auto candidate = BestPaused(sweep)) return Promotion(*candidate);
  if (sweep.may_create || sweep.paused.empty()) return StartNew{};
  if (sweep.running + sweep.waiting > 0) return Wait{};
  if (ranking_->Limit() < ladder_.max())
    return Done{ranking_->LimitReason() + ", and no new trials come"};
  const std::string factor = std::to_string(ladder_.reduction_factor());
  return Done{"none of the paused trials is among the best 1/" + factor +
              " of its rung, rounded down (no trial continues from a rung that fewer than " +
              factor + " have reached), and no new trials come"};
}

std::optional<Asha::Candidate> Asha::BestPaused(const SweepView& sweep) const {
  std::optional<Candidate> best;
  for (const auto& bracket : rungs_) {
    for (auto rung = bracket.rbegin(); rung != bracket.rend(); ++rung) {
      if (best && rung->step() <= best->rung->step()) break;
      if (!IsOpen(*rung)) continue;
      for (const auto& [key, trial] : rung->paused()) {
        if (!rung->IsAmongBest(key, ladder_.reduction_factor())) break;
        if (!sweep.paused.contains(trial)) continue;
        best = Candidate{&*rung, trial};
        break;
      }
    }
  }
  return best;
}

Promote Asha::Promotion(const Candidate& candidate) const {
  const auto& [rung, trial] = candidate;
  const Last& last = last_.at(trial);
  const Rung::Standing standing = rung->StandingOf(last.mark, ladder_.reduction_factor());
  Reason reason = ReasonFor(trial, *rung, standing, last.mark.value);
  reason.text = "promoted at rung " + Text(rung->step()) + ": " +
                StandingText(*rung, standing, last.mark, FormatShort(last.value)) +
                RuleText(*rung, standing);
  return {.trial = trial, .reason = std::move(reason)};
}

// ---- what was observed ---------------------------------------------------------------------

void Asha::Observe(const Event& event) {
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    ObserveReport(reported->attempt.trial.number, reported->report);
  } else if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
    const Verdict& verdict = decided->verdict;
    if (verdict.kind == VerdictKind::kPause && verdict.reason.rule.starts_with(rule_))
      AddPaused(decided->attempt.trial.number);
  } else if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
    RemovePaused(assigned->attempt.trial.number);
  } else if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
    RemovePaused(promoted->trial.number);
  } else if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) {
    RemovePaused(ended->trial.number);
    ranking_->ForgetTrial(ended->trial.number);
  }
}

void Asha::ObserveReport(TrialNumber trial, const Report& report) {
  const double value = objective_.ValueIn(report.metrics);
  Ranking::Arrival arrival{.trial = trial,
                           .step = report.step,
                           .cost = CostOf(value),
                           .rung = RungFor(trial, report.step)};
  const bool scores_changed = ranking_->Observe(arrival);
  if (arrival.rung) records_.push_back({trial, report.step, value, arrival.best_cost});
  if (scores_changed) {
    Rebuild();
  } else if (arrival.rung) {
    const Rung::Mark mark = MarkFor(trial, *arrival.rung, value);
    RungsOf(trial)[*arrival.rung].Record(mark);
    last_[trial] = {*arrival.rung, value, mark};
  }
}

void Asha::AddPaused(TrialNumber trial) {
  paused_.insert(trial);
  const auto last = last_.find(trial);
  if (last == last_.end()) {
    paused_below_.insert(trial);
  } else {
    RungsOf(trial)[last->second.rung].Pause(last->second.mark.key, trial);
  }
}

void Asha::RemovePaused(TrialNumber trial) {
  if (paused_.erase(trial) == 0 || paused_below_.erase(trial) > 0) return;
  const Last& last = last_.at(trial);
  RungsOf(trial)[last.rung].Resume(last.mark.key);
}

std::vector<Ranking::Arrival> Asha::Arrivals() const {
  std::map<TrialNumber, size_t> next_rungs;
  std::vector<Ranking::Arrival> arrivals;
  for (const Record& record : records_) {
    const size_t count = ladder_.CountUpTo(record.step);
    size_t& next =
        next_rungs.try_emplace(record.trial, ladder_.BracketOf(record.trial)).first->second;
    if (count <= next) continue;
    next = count;
    arrivals.push_back(
        {record.trial, record.step, CostOf(record.value), count - 1, record.best_cost});
  }
  return arrivals;
}

void Asha::Rebuild() {
  last_.clear();
  paused_below_.clear();
  const std::vector<Rung> rungs(ladder_.steps().begin(), ladder_.steps().end());
  rungs_.assign(ladder_.brackets(), rungs);
  for (const Ranking::Arrival& arrival : Arrivals()) {
    const double value = CostOf(arrival.cost);
    const Rung::Mark mark = MarkFor(arrival.trial, *arrival.rung, value);
    RungsOf(arrival.trial)[*arrival.rung].Append(mark);
    last_[arrival.trial] = {*arrival.rung, value, mark};
  }
  for (auto& bracket : rungs_) {
    for (Rung& rung : bracket) rung.Sort();
  }
  for (const TrialNumber trial : paused_) AddPaused(trial);
}

void Asha::Adapt(const SweepSpec& spec) {
  ladder_ = Ladder(LadderOptions(spec));
  form_ = FormOf(spec);
  ranking_->Restart(ladder_.steps(), Arrivals());
  Rebuild();
}

void Asha::Save(ArchiveWriter& archive) const {
  archive(records_, paused_);
  ranking_->Save(archive);
}

void Asha::Load(ArchiveReader& archive) {
  archive(records_, paused_);
  ranking_->Restart(ladder_.steps(), Arrivals());
  ranking_->Load(archive);
  if (archive.ok()) Rebuild();
}

// ---- entries -------------------------------------------------------------------------------

namespace {

Option MinOption() {
  return {.name = "min",
          .fallback = int64_t{1},
          .min = 1,
          .help = "Step of the first rung; no trial stops earlier"};
}

Option FactorOption(int64_t fallback) {
  return {.name = "reduction_factor",
          .fallback = fallback,
          .min = 2,
          .help =
              "Reduction factor η: the best 1/η of the trials at a rung continue, and the next "
              "rung is η times as far"};
}

}  // namespace

Entry<Scheduler> AshaEntry() {
  return {.name = "asha",
          .help = "Continues only the best trials at growing steps; needs max",
          .options = {MinOption(),
                      {.name = "mode",
                       .fallback = std::string("stop"),
                       .one_of = {"stop", "promote"},
                       .help = "`stop`: stop the other trials. `promote`: pause every trial at "
                               "each rung, and continue the best when a slot is free"},
                      FactorOption(4),
                      {.name = "brackets",
                       .fallback = int64_t{1},
                       .min = 1,
                       .help = "Number of brackets; each starts one rung later, for metrics that "
                               "mislead early. A trial's bracket is random"}},
          .make = [](const SweepSpec& spec) {
            return MakeAsha(spec, [](const Ladder&) { return std::make_unique<Ranking>(); });
          }};
}

Entry<Scheduler> ExtrapolateEntry() {
  return {.name = "extrapolate",
          .help =
              "Pauses trials at growing steps, and continues those with the best predicted final "
              "values; needs max",
          .options = {MinOption(), FactorOption(3)},
          .make = [](const SweepSpec& spec) {
            return MakeAsha(spec, [](const Ladder& ladder) -> std::unique_ptr<Ranking> {
              return std::make_unique<Extrapolation>(ladder.steps().size());
            });
          }};
}

Entry<Scheduler> PashaEntry() {
  return {.name = "pasha",
          .help =
              "As asha with `mode: promote`, up to a step that grows only while the last two rungs "
              "rank trials differently; needs max",
          .options = {MinOption(), FactorOption(3)},
          .make = [](const SweepSpec& spec) {
            return MakeAsha(spec, [](const Ladder& ladder) -> std::unique_ptr<Ranking> {
              return std::make_unique<Progression>(ladder.steps());
            });
          }};
}

}  // namespace attune::schedulers
