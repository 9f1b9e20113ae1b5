#include "schedulers/asha.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "core/base/random.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

// Come to a rung before one that extrapolates promotes any.
constexpr size_t kFirstTrials = 6;

}  // namespace

template <class A>
void Fields(A& archive, Like<A, Asha::Record>& record) {
  archive(record.trial, record.step, record.value, record.best_cost);
}

Asha::Asha(Objective objective, Options options) : objective_(std::move(objective)) {
  SetRungs(options);
}

void Asha::SetRungs(const Options& options) {
  ATTUNE_CHECK(options.min >= Step(1) && options.min < options.max);
  ATTUNE_CHECK(options.reduction_factor >= 2);
  const int64_t rungs = options.RungsBelowMax();
  ATTUNE_CHECK(options.brackets >= 1 && options.brackets <= rungs);
  reduction_factor_ = options.reduction_factor;
  form_ = options.form;
  seed_ = options.seed;
  max_ = options.max;
  ladders_.clear();
  shares_.clear();
  int64_t first = options.min.value;
  double sum = 0;
  for (int64_t bracket = 0; bracket < options.brackets; ++bracket) {
    Ladder& ladder = ladders_.emplace_back();
    int64_t step = first;
    double trials = 1;  // of which one is trained to the end
    for (int64_t rung = bracket; rung < rungs; ++rung) {
      ladder.push_back({.step = Step(step)});
      if (rung + 1 < rungs) step *= reduction_factor_;
      trials *= static_cast<double>(reduction_factor_);
    }
    ladder.push_back({.step = max_});
    shares_.push_back(sum += trials / static_cast<double>(ladder.size()));
    if (bracket + 1 < options.brackets) first *= reduction_factor_;
  }
  if (options.extrapolates) {
    if (!extrapolation_) extrapolation_.emplace(ladders_[0].size());
    extrapolation_->Restart(ladders_[0].size());
  }
  if (options.progresses) {
    if (!progression_) progression_.emplace(Rungs());
    progression_->Restart(Rungs());
  }
}

const char* Asha::Name() const {
  return extrapolation_ ? kExtrapolate : progression_ ? kPasha : kAsha;
}

std::string Asha::RuleOf(TrialNumber trial) const {
  if (ladders_.size() == 1) return Name();
  return kAsha + (", bracket " + std::to_string(BracketOf(trial) + 1));
}

// ---- verdicts ------------------------------------------------------------------------------

Verdict Asha::Judge(const TrialView& trial, const Report& report) const {
  const Rung* rung = RungFor(trial.id.number, report.step);
  if (rung == nullptr) {
    const auto next = NextMilestone(trial, report.step);
    return Verdict::Continue({.rule = RuleOf(trial.id.number),
                              .step = report.step,
                              .text = "goes on at step " + Text(report.step) +
                                      (next ? ": nothing is decided before rung " + Text(*next)
                                            : ": the last rung is behind it")});
  }
  const double value = objective_.Of(report.metrics);
  const Ladder& ladder = LadderOf(trial.id.number);
  const Mark mark = MarkIf(trial.id.number, static_cast<size_t>(rung - ladder.data()), value);
  const Standing standing = StandingIn(*rung, mark);
  const bool last = rung == &ladder.back();
  const bool among = standing.rank <= standing.going_on;
  const bool finite = std::isfinite(value);
  const bool promotes = form_ == Form::kPromote;
  VerdictKind kind = VerdictKind::kContinue;
  if (!last && promotes && !finite) {
    kind = VerdictKind::kStop;
  } else if (!last && promotes && !(among && NextIn(*rung, CandidateOf(trial.id.number, mark)))) {
    kind = VerdictKind::kPause;
  } else if (!last && !promotes && !among && standing.going_on > 0) {
    kind = VerdictKind::kStop;
  }

  const bool reported = report.metrics.contains(objective_.metric);
  Reason reason = ReasonFor(trial.id.number, *rung, standing, mark.value);
  reason.step = report.step;
  reason.text = std::string(last                          ? "completes"
                            : kind == VerdictKind::kStop  ? "stopped"
                            : kind == VerdictKind::kPause ? "paused"
                                                          : "goes on") +
                " at step " + Text(report.step) + ": " +
                Stands(*rung, standing, mark, reported ? FormatShort(value) : "(not reported)");
  if (last) {
    reason.text += ", the last";
  } else if (promotes && !finite) {
    reason.text += "; what is not finite is never promoted";
  } else {
    reason.text += Rule(*rung, standing);
  }
  return {.kind = kind, .reason = std::move(reason)};
}

Reason Asha::ReasonFor(TrialNumber trial, const Rung& rung, const Standing& standing,
                       double value) const {
  return {.rule = RuleOf(trial),
          .rung = rung.step,
          .value = value,
          .cutoff = standing.cutoff,
          .rank = standing.rank,
          .peers = standing.peers};
}

std::string Asha::Stands(const Rung& rung, const Standing& standing, const Mark& mark,
                         const std::string& value) const {
  const std::string place = "rank " + std::to_string(standing.rank) + " of " +
                            std::to_string(standing.peers) + " at rung " + Text(rung.step);
  if (!extrapolation_ || rung.step == max_ || !std::isfinite(mark.value)) {
    return objective_.metric + " " + value + " is " + place;
  }
  return objective_.metric + " " + value + " heads for " + FormatShort(mark.value) + " ± " +
         SpreadText(mark.spread) + " at step " + Text(max_) + ", " + place;
}

std::string Asha::NobodyGoesBeyond() const {
  return "nobody goes beyond step " + Text(progression_->top()) + " while rungs " +
         Text(progression_->below()) + " and " + Text(progression_->top()) +
         " rank their trials alike (to within " + FormatShort(progression_->epsilon()) + ")";
}

std::string Asha::Rule(const Rung& rung, const Standing& standing) const {
  if (progression_ && !IsOpen(rung)) return "; " + NobodyGoesBeyond();
  if (standing.going_on == 0) {
    return (form_ == Form::kStop ? "; none is stopped before " : "; none goes on before ") +
           std::to_string(reduction_factor_) + " have reached it";
  }
  const std::string who = standing.going_on == 1
                              ? "only the best goes on"
                              : "the best " + std::to_string(standing.going_on) + " go on";
  return "; " + who + " (cutoff " + FormatShort(standing.cutoff) + ")";
}

std::optional<Step> Asha::NextMilestone(const TrialView& trial, Step after) const {
  const Ladder& ladder = LadderOf(trial.id.number);
  const size_t next = std::max(Passed(trial.id.number), RungsUpTo(ladder, after));
  if (next == ladder.size()) return std::nullopt;
  return ladder[next].step;
}

// ---- promotions ----------------------------------------------------------------------------

NextMove Asha::Next(const SweepView& sweep) const {
  for (const TrialNumber trial : below_) {
    if (!sweep.paused.contains(trial)) continue;
    return Promote{.trial = trial,
                   .reason = {.rule = RuleOf(trial),
                              .text = "goes on: it was paused before rung " +
                                      Text(LadderOf(trial).front().step) + ", now the first"}};
  }
  if (extrapolation_ && last_.size() < kFirstTrials && sweep.may_create) return New{};
  const Rung* highest = nullptr;
  const Candidate* candidate = nullptr;
  for (const Ladder& ladder : ladders_) {
    for (auto rung = std::next(ladder.rbegin()); rung != ladder.rend(); ++rung) {
      if (highest != nullptr && rung->step <= highest->step) break;
      if (!IsOpen(*rung)) continue;
      const Candidate* best = Promotable(*rung, sweep);
      if (best != nullptr) highest = &*rung, candidate = best;
    }
  }
  if (candidate != nullptr) {
    const Last& last = last_.at(candidate->trial);
    const Standing standing = StandingIn(*highest, last.mark);
    Reason reason = ReasonFor(candidate->trial, *highest, standing, last.mark.value);
    reason.text = "promoted at rung " + Text(highest->step) + ": " +
                  Stands(*highest, standing, last.mark, FormatShort(last.value)) +
                  Rule(*highest, standing);
    return Promote{.trial = candidate->trial, .reason = std::move(reason)};
  }
  if (sweep.may_create || sweep.paused.empty()) return New{};
  if (sweep.running + sweep.waiting > 0) return Wait{};
  if (progression_ && !progression_->Ends()) return Done{NobodyGoesBeyond() + ", and no more come"};
  const std::string factor = std::to_string(reduction_factor_);
  return Done{"none of the paused trials is among the best 1/" + factor +
              " of its rung, rounded down (nobody goes on from a rung that fewer than " + factor +
              " have reached), and no more come"};
}

const Asha::Candidate* Asha::Promotable(const Rung& rung, const SweepView& sweep) const {
  const size_t going_on = rung.marks.size() / static_cast<size_t>(reduction_factor_);
  for (const Candidate& candidate : rung.paused) {
    if (PlaceIn(rung, last_.at(candidate.trial).mark) >= going_on) break;
    if (sweep.paused.contains(candidate.trial)) return &candidate;
  }
  return nullptr;
}

bool Asha::IsOpen(const Rung& rung) const {
  return rung.step != max_ && (!progression_ || rung.step < progression_->top());
}

bool Asha::NextIn(const Rung& rung, const Candidate& candidate) const {
  if (!IsOpen(rung)) return false;
  if (extrapolation_ && last_.size() + (last_.contains(candidate.trial) ? 0 : 1) < kFirstTrials) {
    return false;
  }
  if (!rung.paused.empty() && *rung.paused.begin() < candidate) return false;
  for (const Ladder& ladder : ladders_) {
    for (const Rung& higher : ladder) {
      if (higher.step <= rung.step || !IsOpen(higher) || higher.paused.empty()) continue;
      const size_t going_on = higher.marks.size() / static_cast<size_t>(reduction_factor_);
      if (PlaceIn(higher, last_.at(higher.paused.begin()->trial).mark) < going_on) return false;
    }
  }
  return true;
}

Asha::Candidate Asha::CandidateOf(TrialNumber trial, const Mark& mark) const {
  return {CostOf(mark.value), mark.order, trial};
}

// ---- what was observed ---------------------------------------------------------------------

void Asha::Observe(const Event& event) {
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    const TrialNumber trial = reported->attempt.trial.number;
    const Report& report = reported->report;
    const double value = objective_.Of(report.metrics);
    if (extrapolation_) extrapolation_->See(trial, CostOf(value));
    if (progression_) progression_->See(trial, report.step, CostOf(value));
    if (RungFor(trial, report.step) != nullptr) Add({trial, report.step, value});
    if (extrapolation_ && extrapolation_->IsDue()) {
      extrapolation_->Fit();
      Rank();
    }
  } else if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
    const bool paused = decided->verdict.kind == VerdictKind::kPause;
    const TrialNumber trial = decided->attempt.trial.number;
    if (paused && decided->verdict.reason.rule.starts_with(Name())) Park(trial);
  } else if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
    Forget(assigned->attempt.trial.number);
  } else if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
    Forget(promoted->trial.number);
  } else if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) {
    Forget(ended->trial.number);
    if (progression_) progression_->End(ended->trial.number);
  }
}

// REQUIRES: there is a rung for it.
void Asha::Add(Record record) {
  Ladder& ladder = LadderOf(record.trial);
  const size_t index = RungsUpTo(ladder, record.step) - 1;
  Rung& rung = ladder[index];
  if (extrapolation_) {
    record.best_cost = extrapolation_->BestOf(record.trial);
    extrapolation_->Come(record.trial, index, CostOf(record.value), record.best_cost);
  }
  records_.push_back(record);
  const Mark mark = MarkOf(record, index);
  rung.marks.insert(rung.marks.begin() + static_cast<ptrdiff_t>(PlaceIn(rung, mark)), mark);
  last_[record.trial] = {record.step, record.value, mark};
  if (progression_) progression_->Come(record.trial, index, record.step, CostOf(record.value));
}

Asha::Mark Asha::MarkIf(TrialNumber trial, size_t rung, double value) const {
  const auto order = static_cast<uint32_t>(LadderOf(trial)[rung].marks.size());
  if (!extrapolation_ || !std::isfinite(value)) return {.value = value, .order = order};
  const auto forecast = extrapolation_->If(trial, rung, CostOf(value));
  return {.value = CostOf(forecast.cost), .spread = forecast.spread, .order = order};
}

// As the last of its rung. REQUIRES: where it extrapolates, the trial has come to the rung.
Asha::Mark Asha::MarkOf(const Record& record, size_t rung) const {
  const auto order = static_cast<uint32_t>(LadderOf(record.trial)[rung].marks.size());
  if (!extrapolation_ || !std::isfinite(record.value)) {
    return {.value = record.value, .order = order};
  }
  const auto forecast = extrapolation_->At(record.trial, rung);
  return {.value = CostOf(forecast.cost), .spread = forecast.spread, .order = order};
}

void Asha::Park(TrialNumber trial) {
  waiting_.insert(trial);
  const auto last = last_.find(trial);
  if (last == last_.end()) {
    below_.insert(trial);
  } else {
    LadderOf(trial)[Passed(trial) - 1].paused.insert(CandidateOf(trial, last->second.mark));
  }
}

void Asha::Forget(TrialNumber trial) {
  if (waiting_.erase(trial) == 0 || below_.erase(trial) > 0) return;
  LadderOf(trial)[Passed(trial) - 1].paused.erase(CandidateOf(trial, last_.at(trial).mark));
}

void Asha::Adapt(const SweepSpec& spec) {
  SetRungs(OptionsOf(spec));
  Recall();
  Rank();
}

void Asha::Recall() {
  if (!extrapolation_ && !progression_) return;
  last_.clear();
  for (const Record& record : records_) {
    if (RungFor(record.trial, record.step) == nullptr) continue;
    const size_t rung = RungsUpTo(LadderOf(record.trial), record.step) - 1;
    last_[record.trial].step = record.step;
    const double cost = CostOf(record.value);
    if (extrapolation_) extrapolation_->Come(record.trial, rung, cost, record.best_cost);
    if (progression_) progression_->Place(record.trial, rung, record.step, cost);
  }
}

void Asha::Rank() {
  last_.clear();
  below_.clear();
  for (Ladder& ladder : ladders_) {
    for (Rung& rung : ladder) rung = {.step = rung.step};
  }
  for (const Record& record : records_) {
    if (RungFor(record.trial, record.step) == nullptr) continue;
    Ladder& ladder = LadderOf(record.trial);
    const size_t rung = RungsUpTo(ladder, record.step) - 1;
    const Mark mark = MarkOf(record, rung);
    ladder[rung].marks.push_back(mark);
    last_[record.trial] = {record.step, record.value, mark};
  }
  const auto before = [this](const Mark& a, const Mark& b) { return Before(a, b); };
  for (Ladder& ladder : ladders_) {
    for (Rung& rung : ladder) std::ranges::sort(rung.marks, before);
  }
  for (const TrialNumber trial : waiting_) Park(trial);
}

void Asha::Save(ArchiveWriter& archive) const {
  archive(records_, waiting_);
  if (extrapolation_) extrapolation_->Save(archive);
  if (progression_) progression_->Save(archive);
}

void Asha::Load(ArchiveReader& archive) {
  archive(records_, waiting_);
  Recall();
  if (extrapolation_) extrapolation_->Load(archive);
  if (progression_) progression_->Load(archive);
  if (archive.ok()) Rank();
}

// ---- rungs ---------------------------------------------------------------------------------

// Those of the first bracket, which the others have some of.
std::vector<Step> Asha::Rungs() const {
  std::vector<Step> steps;
  for (const Rung& rung : ladders_.front()) steps.push_back(rung.step);
  return steps;
}

size_t Asha::BracketOf(TrialNumber trial) const {
  if (ladders_.size() == 1) return 0;
  const double drawn = RandomStream(seed_, trial, "asha/bracket").Uniform() * shares_.back();
  const auto bracket = std::ranges::upper_bound(shares_, drawn) - shares_.begin();
  return std::min(static_cast<size_t>(bracket), ladders_.size() - 1);
}

const Asha::Rung* Asha::RungFor(TrialNumber trial, Step step) const {
  const Ladder& ladder = LadderOf(trial);
  const size_t reached = RungsUpTo(ladder, step);
  return reached > Passed(trial) ? &ladder[reached - 1] : nullptr;
}

size_t Asha::Passed(TrialNumber trial) const {
  const auto last = last_.find(trial);
  return last == last_.end() ? 0 : RungsUpTo(LadderOf(trial), last->second.step);
}

size_t Asha::RungsUpTo(const Ladder& ladder, Step step) {
  const auto beyond =
      std::upper_bound(ladder.begin(), ladder.end(), step,
                       [](Step wanted, const Rung& rung) { return wanted < rung.step; });
  return static_cast<size_t>(beyond - ladder.begin());
}

bool Asha::Before(const Mark& a, const Mark& b) const {
  if (objective_.Better(a.value, b.value)) return true;
  return !objective_.Better(b.value, a.value) && a.order < b.order;
}

size_t Asha::PlaceIn(const Rung& rung, const Mark& mark) const {
  const auto place =
      std::lower_bound(rung.marks.begin(), rung.marks.end(), mark,
                       [this](const Mark& a, const Mark& b) { return Before(a, b); });
  return static_cast<size_t>(place - rung.marks.begin());
}

Asha::Standing Asha::StandingIn(const Rung& rung, const Mark& mark) const {
  const size_t place = PlaceIn(rung, mark);
  const bool recorded = mark.order < rung.marks.size();
  const size_t peers = rung.marks.size() + (recorded ? 0 : 1);
  const size_t going_on = peers / static_cast<size_t>(reduction_factor_);
  Standing standing{.rank = static_cast<int64_t>(place) + 1,
                    .peers = static_cast<int64_t>(peers),
                    .going_on = static_cast<int64_t>(going_on)};
  if (going_on == 0) return standing;
  const size_t cut = going_on - 1;
  standing.cutoff =
      cut == place ? mark.value : rung.marks[cut - (!recorded && cut > place ? 1 : 0)].value;
  return standing;
}

}  // namespace attune::schedulers
