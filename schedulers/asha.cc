#include "schedulers/asha.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/check.h"

namespace attune::schedulers {
namespace {

constexpr std::string_view kRule = "asha";

std::string Text(Step step) { return std::to_string(step.value); }

Asha::Options OptionsOf(const SweepSpec& spec) {
  return {.min = Step(std::get<int64_t>(spec.scheduler.options.at("min"))),
          .max = spec.max_step,
          .reduction_factor = std::get<int64_t>(spec.scheduler.options.at("reduction_factor")),
          .form = std::get<std::string>(spec.scheduler.options.at("mode")) == "promote"
                      ? Asha::Form::kPromote
                      : Asha::Form::kStop};
}

Result<std::unique_ptr<Scheduler>> Make(const SweepSpec& spec) {
  const Asha::Options options = OptionsOf(spec);
  if (options.max == Step(0)) {
    return Error{ErrorCode::kInvalid,
                 "scheduler.max: asha needs max, the step at which a trial is complete"};
  }
  if (options.min >= options.max) {
    return Error{ErrorCode::kInvalid,
                 "scheduler.min: " + Text(options.min) + " is not below max " + Text(options.max) +
                     ", so all would be trained to their end; lower min or raise max"};
  }
  return {std::make_unique<Asha>(spec.objective(), options)};
}

}  // namespace

template <class A>
void Fields(A& archive, Like<A, Asha::Record>& record) {
  archive(record.trial, record.step, record.value);
}

Asha::Asha(Objective objective, Options options) : objective_(std::move(objective)) {
  SetRungs(options);
}

void Asha::SetRungs(const Options& options) {
  ATTUNE_CHECK(options.min >= Step(1) && options.min < options.max);
  ATTUNE_CHECK(options.reduction_factor >= 2);
  reduction_factor_ = options.reduction_factor;
  form_ = options.form;
  rungs_.clear();
  for (int64_t step = options.min.value; step < options.max.value; step *= reduction_factor_) {
    rungs_.push_back({.step = Step(step)});
    if (step > options.max.value / reduction_factor_) break;  // the product is beyond max
  }
  rungs_.push_back({.step = options.max});
}

// ---- verdicts ------------------------------------------------------------------------------

Verdict Asha::Judge(const TrialView& trial, const Report& report) const {
  const Rung* rung = RungFor(trial.id.number, report.step);
  if (rung == nullptr) {
    const auto next = NextMilestone(trial, report.step);
    return Verdict::Continue({.rule = std::string(kRule),
                              .step = report.step,
                              .text = "goes on at step " + Text(report.step) +
                                      (next ? ": nothing is decided before rung " + Text(*next)
                                            : ": the last rung is behind it")});
  }
  const Mark mark{objective_.Of(report.metrics), static_cast<uint32_t>(rung->marks.size())};
  const Standing standing = StandingIn(*rung, mark);
  const bool last = rung == &rungs_.back();
  const bool among = standing.rank <= standing.going_on;
  const bool finite = std::isfinite(mark.value);
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
  Reason reason = ReasonFor(*rung, standing, mark.value);
  reason.step = report.step;
  reason.text = std::string(last                          ? "completes"
                            : kind == VerdictKind::kStop  ? "stopped"
                            : kind == VerdictKind::kPause ? "paused"
                                                          : "goes on") +
                " at step " + Text(report.step) + ": " +
                Stands(*rung, standing, reported ? FormatShort(mark.value) : "(not reported)");
  if (last) {
    reason.text += ", the last";
  } else if (promotes && !finite) {
    reason.text += "; what is not finite is never promoted";
  } else {
    reason.text += Rule(standing);
  }
  return {.kind = kind, .reason = std::move(reason)};
}

Reason Asha::ReasonFor(const Rung& rung, const Standing& standing, double value) const {
  return {.rule = std::string(kRule),
          .rung = rung.step,
          .value = value,
          .cutoff = standing.cutoff,
          .rank = standing.rank,
          .peers = standing.peers};
}

std::string Asha::Stands(const Rung& rung, const Standing& standing,
                         const std::string& value) const {
  return objective_.metric + " " + value + " is rank " + std::to_string(standing.rank) + " of " +
         std::to_string(standing.peers) + " at rung " + Text(rung.step);
}

std::string Asha::Rule(const Standing& standing) const {
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
  const size_t next = std::max(Passed(trial.id.number), RungsUpTo(after));
  if (next == rungs_.size()) return std::nullopt;
  return rungs_[next].step;
}

// ---- promotions ----------------------------------------------------------------------------

NextMove Asha::Next(const SweepView& sweep) const {
  for (const TrialNumber trial : below_) {
    if (!sweep.paused.contains(trial)) continue;
    return Promote{.trial = trial,
                   .reason = {.rule = std::string(kRule),
                              .text = "goes on: it was paused before rung " +
                                      Text(rungs_.front().step) + ", now the first"}};
  }
  for (auto rung = std::next(rungs_.rbegin()); rung != rungs_.rend(); ++rung) {
    const Candidate* candidate = Promotable(*rung, sweep);
    if (candidate == nullptr) continue;
    const Mark& mark = last_.at(candidate->trial).mark;
    const Standing standing = StandingIn(*rung, mark);
    Reason reason = ReasonFor(*rung, standing, mark.value);
    reason.text = "promoted at rung " + Text(rung->step) + ": " +
                  Stands(*rung, standing, FormatShort(mark.value)) + Rule(standing);
    return Promote{.trial = candidate->trial, .reason = std::move(reason)};
  }
  if (sweep.may_create || sweep.paused.empty()) return New{};
  if (sweep.running + sweep.waiting > 0) return Wait{};
  return Done{"none of the paused trials is among the best 1/" + std::to_string(reduction_factor_) +
              " of its rung, and no more come"};
}

const Asha::Candidate* Asha::Promotable(const Rung& rung, const SweepView& sweep) const {
  const size_t going_on = rung.marks.size() / static_cast<size_t>(reduction_factor_);
  for (const Candidate& candidate : rung.paused) {
    if (PlaceIn(rung, last_.at(candidate.trial).mark) >= going_on) break;
    if (sweep.paused.contains(candidate.trial)) return &candidate;
  }
  return nullptr;
}

bool Asha::NextIn(const Rung& rung, const Candidate& candidate) const {
  if (!rung.paused.empty() && *rung.paused.begin() < candidate) return false;
  for (const Rung* higher = &rung + 1; higher != &rungs_.back(); ++higher) {
    const size_t going_on = higher->marks.size() / static_cast<size_t>(reduction_factor_);
    if (!higher->paused.empty() &&
        PlaceIn(*higher, last_.at(higher->paused.begin()->trial).mark) < going_on)
      return false;
  }
  return true;
}

Asha::Candidate Asha::CandidateOf(TrialNumber trial, const Mark& mark) const {
  return {objective_.mode == Mode::kMax ? -mark.value : mark.value, mark.order, trial};
}

// ---- what was observed ---------------------------------------------------------------------

void Asha::Observe(const Event& event) {
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    const TrialNumber trial = reported->attempt.trial.number;
    const Report& report = reported->report;
    if (RungFor(trial, report.step) != nullptr)
      Add({trial, report.step, objective_.Of(report.metrics)});
  } else if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
    const bool paused = decided->verdict.kind == VerdictKind::kPause;
    if (paused && decided->verdict.reason.rule == kRule) Park(decided->attempt.trial.number);
  } else if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
    Forget(assigned->attempt.trial.number);
  } else if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
    Forget(promoted->trial.number);
  } else if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) {
    Forget(ended->trial.number);
  }
}

// REQUIRES: there is a rung for it.
void Asha::Add(const Record& record) {
  records_.push_back(record);
  Rung& rung = rungs_[RungsUpTo(record.step) - 1];
  const Mark mark{record.value, static_cast<uint32_t>(rung.marks.size())};
  rung.marks.insert(rung.marks.begin() + static_cast<ptrdiff_t>(PlaceIn(rung, mark)), mark);
  last_[record.trial] = {record.step, mark};
}

void Asha::Park(TrialNumber trial) {
  waiting_.insert(trial);
  const auto last = last_.find(trial);
  if (last == last_.end()) {
    below_.insert(trial);
  } else {
    rungs_[Passed(trial) - 1].paused.insert(CandidateOf(trial, last->second.mark));
  }
}

void Asha::Forget(TrialNumber trial) {
  if (waiting_.erase(trial) == 0 || below_.erase(trial) > 0) return;
  rungs_[Passed(trial) - 1].paused.erase(CandidateOf(trial, last_.at(trial).mark));
}

void Asha::Adapt(const SweepSpec& spec) {
  SetRungs(OptionsOf(spec));
  Rebuild();
}

void Asha::Rebuild() {
  last_.clear();
  below_.clear();
  for (Rung& rung : rungs_) rung = {.step = rung.step};
  for (const Record& record : records_) {
    if (RungFor(record.trial, record.step) == nullptr) continue;
    Rung& rung = rungs_[RungsUpTo(record.step) - 1];
    const Mark mark{record.value, static_cast<uint32_t>(rung.marks.size())};
    rung.marks.push_back(mark);
    last_[record.trial] = {record.step, mark};
  }
  for (Rung& rung : rungs_)
    std::ranges::sort(rung.marks, [this](const Mark& a, const Mark& b) { return Before(a, b); });
  for (const TrialNumber trial : waiting_) Park(trial);
}

void Asha::Save(ArchiveWriter& archive) const { archive(records_, waiting_); }

void Asha::Load(ArchiveReader& archive) {
  archive(records_, waiting_);
  Rebuild();
}

// ---- rungs ---------------------------------------------------------------------------------

std::vector<Step> Asha::Rungs() const {
  std::vector<Step> steps;
  for (const Rung& rung : rungs_) steps.push_back(rung.step);
  return steps;
}

const Asha::Rung* Asha::RungFor(TrialNumber trial, Step step) const {
  const size_t reached = RungsUpTo(step);
  return reached > Passed(trial) ? &rungs_[reached - 1] : nullptr;
}

size_t Asha::Passed(TrialNumber trial) const {
  const auto last = last_.find(trial);
  return last == last_.end() ? 0 : RungsUpTo(last->second.step);
}

size_t Asha::RungsUpTo(Step step) const {
  const auto beyond =
      std::upper_bound(rungs_.begin(), rungs_.end(), step,
                       [](Step wanted, const Rung& rung) { return wanted < rung.step; });
  return static_cast<size_t>(beyond - rungs_.begin());
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

Entry<Scheduler> AshaEntry() {
  return {.name = "asha",
          .help = "trains on only those among the best at growing steps; needs max",
          .options = {{.name = "min",
                       .fallback = int64_t{1},
                       .min = 1,
                       .help = "step of the first rung: the least a trial trains"},
                      {.name = "mode",
                       .fallback = std::string("stop"),
                       .one_of = {"stop", "promote"},
                       .help = "stop the others for good, or pause every trial at each rung and "
                               "promote the best with the slots that are free"},
                      {.name = "reduction_factor",
                       .fallback = int64_t{4},
                       .min = 2,
                       .help = "one in so many goes on, and each rung is so many times further"}},
          .make = Make};
}

}  // namespace attune::schedulers
