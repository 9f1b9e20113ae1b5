#include "schedulers/hyperband.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

constexpr std::string_view kHyperBand = "hyperband";
constexpr int64_t kMostTrials = 100'000;  // of a bracket

// η^s for s = 0, 1, …, as long as it is at most max / min.
std::vector<int64_t> Powers(const HyperBand::Options& options) {
  const int64_t most = options.max.value / options.min.value;
  std::vector<int64_t> powers{1};
  while (powers.back() <= most / options.reduction_factor)
    powers.push_back(powers.back() * options.reduction_factor);
  return powers;
}

HyperBand::Options HyperBandOptions(const SweepSpec& spec) {
  return {.min = Step(std::get<int64_t>(spec.scheduler.options.at("min"))),
          .max = spec.max_step,
          .reduction_factor = std::get<int64_t>(spec.scheduler.options.at("reduction_factor"))};
}

Result<std::unique_ptr<Scheduler>> MakeHyperBand(const SweepSpec& spec) {
  const HyperBand::Options options = HyperBandOptions(spec);
  if (options.max == Step(0)) return MissingMax(spec.scheduler.name);
  const std::vector<int64_t> powers = Powers(options);
  if (options.min >= options.max || powers.size() == 1) {
    return Error{ErrorCode::kInvalid,
                 "scheduler.min: " + Text(options.min) + " times reduction_factor " +
                     Text(options.reduction_factor) + " is beyond max " + Text(options.max) +
                     ", so no trial would be judged; lower them or raise max"};
  }
  if (powers.back() > kMostTrials) {
    return Error{ErrorCode::kInvalid, "scheduler.min: from " + Text(options.min) + " to max " +
                                          Text(options.max) + " a bracket would begin with " +
                                          Text(powers.back()) + " trials, more than " +
                                          Text(kMostTrials) + "; raise min"};
  }
  return {std::make_unique<HyperBand>(spec.objective(), options)};
}

}  // namespace

std::vector<BracketShape> HyperBand::Round(const Options& options) {
  ATTUNE_CHECK(options.min >= Step(1) && options.min < options.max);
  ATTUNE_CHECK(options.reduction_factor >= 2);
  const std::vector<int64_t> powers = Powers(options);
  const int64_t brackets = std::ssize(powers);  // s_max + 1
  std::vector<BracketShape> round;
  for (int64_t s = brackets - 1; s >= 0; --s) {
    BracketShape& shape = round.emplace_back();
    shape.trials = (brackets * powers[static_cast<size_t>(s)] + s) / (s + 1);
    for (int64_t left = s; left > 0; --left)
      shape.rungs.emplace_back(options.max.value / powers[static_cast<size_t>(left)]);
  }
  return round;
}

HyperBand::HyperBand(Objective objective, Options options)
    : objective_(std::move(objective)), options_(options), round_(Round(options)) {
  for (const BracketShape& shape : round_) round_trials_ += shape.trials;
}

// ---- verdicts ------------------------------------------------------------------------------

Verdict HyperBand::Judge(const TrialView& trial, const Report& report) const {
  const std::string at = " at step " + Text(report.step) + ": ";
  auto seat = SeatOf(trial.id.number);
  if (!seat || !seat->bracket.ReachesRung(seat->member, report.step)) {
    return NothingDecided(std::string(kHyperBand), report.step, NextMilestone(trial, report.step),
                          "rung", "no decision about it is left");
  }
  Bracket& bracket = seat->bracket;
  bracket.Record(objective_, seat->member, report.step, objective_.ValueIn(report.metrics));
  const Bracket::Member& member = bracket.members()[seat->member];
  const Bracket::Standing standing = bracket.StandingOf(seat->member);
  const bool passed = member.level == bracket.shape().rungs.size();
  const VerdictKind kind = member.place == Bracket::Place::kWaiting ? VerdictKind::kPause
                           : member.place == Bracket::Place::kOut && !passed
                               ? VerdictKind::kStop
                               : VerdictKind::kContinue;
  Reason reason = ReasonFor(bracket, seat->first, standing);
  reason.step = report.step;
  reason.text = (kind == VerdictKind::kPause  ? "paused"
                 : kind == VerdictKind::kStop ? "stopped"
                                              : "continues") +
                at + reason.text;
  if (kind == VerdictKind::kStop && !std::isfinite(standing.value))
    reason.text += "; a trial whose value is not finite never continues";
  else if (kind == VerdictKind::kPause)
    reason.text += " as soon as no other trial can be better";
  return {.kind = kind, .reason = std::move(reason)};
}

Reason HyperBand::ReasonFor(const Bracket& bracket, uint32_t first,
                            const Bracket::Standing& standing) const {
  const std::string trials =
      "trials " + Text(first) + " to " + Text(first + bracket.shape().trials - 1);
  return {
      .rule = std::string(kHyperBand) + ", " + trials,  // compared with each other only
      .rung = standing.rung,
      .value = standing.value,
      .cutoff = standing.cutoff,
      .rank = standing.rank,
      .peers = standing.peers,
      .text = objective_.metric + " " + FormatShort(standing.value) + " is rank " +
              Text(standing.rank) + " of " + Text(standing.peers) + " at rung " +
              Text(standing.rung) + " of " + trials + "; " +
              (standing.continuing == 1 ? "the best continues"
                                        : "the best " + Text(standing.continuing) + " continue")};
}

std::optional<Step> HyperBand::NextMilestone(const TrialView& trial, Step after) const {
  const auto within_max = [this](std::optional<Step> next) {
    return next && *next < options_.max ? next : std::nullopt;
  };
  if (const auto entry = FindJoined(trial.id.number); entry != brackets_.end())
    return within_max(entry->second.NextRung(trial.id.number.value - entry->first, after));
  const auto seat = SeatOf(trial.id.number);
  return seat ? within_max(seat->bracket.NextRung(seat->member, after)) : std::nullopt;
}

// ---- what free slots are for ---------------------------------------------------------------

NextMove HyperBand::Next(const SweepView& sweep) const {
  for (const auto& entry : brackets_) {
    std::optional<uint32_t> chosen;
    const Bracket* bracket = &entry.second;
    Brackets::value_type closed{entry.first, {}};
    if (!sweep.may_create && !bracket->IsFull()) {
      closed.second = *bracket;
      closed.second.Close(objective_);
      bracket = &closed.second;
      chosen = ChosenOf(closed, sweep);
    } else {
      chosen = ChosenOf(entry, sweep);
    }
    if (!chosen) continue;
    Reason reason = ReasonFor(*bracket, entry.first, bracket->StandingOf(*chosen));
    reason.text = "promoted at rung " + Text(reason.rung) + ": " + reason.text;
    return Promote{.trial = TrialNumber(entry.first + *chosen), .reason = std::move(reason)};
  }
  if (sweep.may_create || sweep.paused.empty()) return StartNew{};
  if (sweep.running + sweep.waiting > 0) return Wait{};
  return Done{"every bracket is decided, no paused trial continues, and no new trials come"};
}

std::optional<uint32_t> HyperBand::ChosenOf(const Brackets::value_type& entry,
                                            const SweepView& sweep) const {
  const auto& members = entry.second.members();
  std::optional<uint32_t> chosen;
  for (uint32_t member = 0; member < members.size(); ++member) {
    if (members[member].place != Bracket::Place::kChosen) continue;
    if (chosen && members[*chosen].level >= members[member].level) continue;
    if (sweep.paused.contains(TrialNumber(entry.first + member))) chosen = member;
  }
  return chosen;
}

// ---- what was observed ---------------------------------------------------------------------

void HyperBand::Observe(const Event& event) {
  if (const auto* created = std::get_if<TrialCreated>(&event.fact)) {
    Create(created->trial.number);
    return;
  }
  const auto trial = TrialOf(event.fact);
  if (!trial) return;
  if (trial->number.value >= created_) Create(trial->number);
  const auto found = FindJoined(trial->number);
  if (found == brackets_.end()) return;
  const auto bracket = brackets_.find(found->first);
  const uint32_t member = trial->number.value - bracket->first;
  const Bracket::Place place = bracket->second.members()[member].place;
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    const Report& report = reported->report;
    if (bracket->second.ReachesRung(member, report.step))
      bracket->second.Record(objective_, member, report.step, objective_.ValueIn(report.metrics));
  } else if (std::holds_alternative<TrialPromoted>(event.fact) ||
             std::holds_alternative<AttemptAssigned>(event.fact)) {
    if (place == Bracket::Place::kWaiting || place == Bracket::Place::kChosen)
      bracket->second.Continue(objective_, member);
  } else if (std::holds_alternative<TrialEnded>(event.fact) ||
             std::holds_alternative<TrialReopened>(event.fact)) {
    bracket->second.End(objective_, member);
  } else {
    return;
  }
  EraseIfDecided(bracket);
}

void HyperBand::Create(TrialNumber trial) {
  for (; created_ <= trial.value; ++created_) {
    auto started = FindStarted(TrialNumber(created_));
    if (started == brackets_.end()) {
      Seat seat = *SeatOf(TrialNumber(created_));
      started = brackets_.emplace(seat.first, std::move(seat.bracket)).first;
    }
    const auto bracket = brackets_.find(started->first);
    bracket->second.Join(created_ - bracket->first);
    EraseIfDecided(bracket);
  }
}

void HyperBand::EraseIfDecided(Brackets::iterator bracket) {
  if (bracket->second.IsDecided()) brackets_.erase(bracket);
}

HyperBand::Brackets::const_iterator HyperBand::FindStarted(TrialNumber trial) const {
  const auto beyond = brackets_.upper_bound(trial.value);
  if (beyond == brackets_.begin()) return brackets_.end();
  const auto& [first, bracket] = *std::prev(beyond);
  return trial.value - first < bracket.shape().trials ? std::prev(beyond) : brackets_.end();
}

HyperBand::Brackets::const_iterator HyperBand::FindJoined(TrialNumber trial) const {
  const auto started = FindStarted(trial);
  if (started == brackets_.end()) return started;
  return trial.value - started->first < started->second.members().size() ? started
                                                                         : brackets_.end();
}

std::optional<HyperBand::Seat> HyperBand::SeatOf(TrialNumber trial) const {
  if (const auto started = FindStarted(trial); started != brackets_.end()) {
    Seat seat{started->first, trial.value - started->first, started->second};
    seat.bracket.Join(seat.member);
    return seat;
  }
  if (trial.value < created_ || trial.value < rounds_from_) return std::nullopt;
  int64_t left = (trial.value - rounds_from_) % round_trials_;
  auto shape = round_.begin();
  while (left >= shape->trials) left -= (shape++)->trials;
  const auto member = static_cast<uint32_t>(left);
  Seat seat{trial.value - member, member, Bracket(*shape, options_.reduction_factor)};
  seat.bracket.Join(member);
  return seat;
}

void HyperBand::Adapt(const SweepSpec& spec) {
  const Options options = HyperBandOptions(spec);
  if (options == options_) return;
  options_ = options;
  round_ = Round(options);
  round_trials_ = 0;
  for (const BracketShape& shape : round_) round_trials_ += shape.trials;
  rounds_from_ = created_;
  if (brackets_.empty()) return;
  const auto& [first, last] = *brackets_.rbegin();
  rounds_from_ = std::max(created_, first + static_cast<uint32_t>(last.shape().trials));
}

void HyperBand::Save(ArchiveWriter& archive) const { archive(rounds_from_, created_, brackets_); }

void HyperBand::Load(ArchiveReader& archive) { archive(rounds_from_, created_, brackets_); }

std::vector<Step> HyperBand::Rungs() const {
  std::vector<Step> rungs = round_.front().rungs;
  rungs.push_back(options_.max);
  return rungs;
}

Entry<Scheduler> HyperBandEntry() {
  return {
      .name = std::string(kHyperBand),
      .help =
          "Runs brackets of successive halving, from many short trials to few long ones; needs max",
      .options = {{.name = "min",
                   .fallback = int64_t{1},
                   .min = 1,
                   .help = "Smallest step of a first rung"},
                  {.name = "reduction_factor",
                   .fallback = int64_t{3},
                   .min = 2,
                   .help = "Reduction factor η: the best 1/η of the trials at a rung continue, and "
                           "the next rung is η times as far"}},
      .make = MakeHyperBand};
}

}  // namespace attune::schedulers
