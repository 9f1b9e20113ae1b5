#include "schedulers/pbt.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "core/base/random.h"
#include "core/log/fields.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

constexpr double kRounding = 1e-9;  // error of a fraction of a count

bool Failed(TrialState state) {
  return state == TrialState::kFailed || state == TrialState::kKilled;
}

}  // namespace

template <class A>
void Fields(A& archive, Like<A, Pbt::Turn>& turn) {
  archive(turn.donor, turn.config, turn.reason);
}

template <class A>
void Fields(A& archive, Like<A, Pbt::Member>& member) {
  archive(member.config, member.value, member.ranked, member.paused, member.gang_ended, member.step,
          member.base, member.decisions, member.newest, member.foreign_attempts, member.turn);
}

Pbt::Pbt(Objective objective, SearchSpace space, uint64_t seed, Options options)
    : objective_(std::move(objective)), space_(std::move(space)), seed_(seed), options_(options) {
  ATTUNE_CHECK(options.interval >= 1 && options.population >= 1 && options.max >= Step(1));
  ATTUNE_CHECK(options.fraction > 0 && options.fraction <= 0.5);
}

// ---- verdicts ------------------------------------------------------------------------------

Verdict Pbt::Judge(const TrialView& trial, const Report& report) const {
  const TrialNumber number = trial.id.number;
  const Member& self = MemberOf(trial);
  if (!IsRankedAt(self, report.step)) {
    return NothingDecided(Rule(), report.step, NextMilestone(trial, report.step), "step",
                          "nothing is decided before its end");
  }
  const double value = objective_.ValueIn(report.metrics);
  const std::string at = " at step " + Text(report.step) + ": ";
  if (options_.synchronous) {
    return Verdict::Pause(
        {.rule = Rule(),
         .step = report.step,
         .rung = IntervalUpTo(report.step),
         .value = value,
         .text = "paused" + at + "members are ranked when all have reached their intervals"});
  }
  const Standing standing = StandingOf(number, value);
  Turn turn = TurnOf(number, standing, self.decisions, ReasonFor(standing, value, report.step));
  if (turn.donor) {
    return Verdict::Exploit(*turn.donor, std::move(turn.config), std::move(turn.reason));
  }
  const bool pauses = DoOthersWait(number);
  turn.reason.text = (pauses ? "paused" : "continues") + at + turn.reason.text +
                     (pauses ? "; others wait for its slot" : "");
  return pauses ? Verdict::Pause(std::move(turn.reason))
                : Verdict::Continue(std::move(turn.reason));
}

Reason Pbt::ReasonFor(const Standing& standing, double value, Step step) const {
  return {.rule = Rule(),
          .step = step,
          .rung = IntervalUpTo(step),
          .value = value,
          .cutoff = standing.cutoff,
          .rank = standing.rank,
          .peers = standing.peers,
          .text = objective_.metric + " " + FormatShort(value) + " is rank " + Text(standing.rank) +
                  " of " + Text(standing.peers) + " in the population"};
}

Pbt::Turn Pbt::TurnOf(TrialNumber trial, const Standing& standing, int64_t decisions,
                      Reason reason) const {
  const bool last = standing.rank > standing.peers - standing.ends;
  if (!last) return {.reason = std::move(reason)};
  if ((decisions + 1) * options_.interval >= options_.max.value) {
    reason.text += "; it has trained for as long as max, and clones no more";
    return {.reason = std::move(reason)};
  }
  if (standing.donors.empty()) {
    reason.text += "; none of the first " + Text(standing.ends) +
                   " has a checkpoint and a better value to clone";
    return {.reason = std::move(reason)};
  }
  RandomStream stream(seed_, trial, "pbt/donor/" + Text(decisions));
  const TrialNumber donor =
      standing.donors[static_cast<size_t>(stream.Integer(0, std::ssize(standing.donors) - 1))];
  const Member& source = members_.at(donor);
  auto [config, how] = ConfigFrom(source, trial, decisions);
  Turn turn{.donor = source.newest, .config = std::move(config), .reason = std::move(reason)};
  turn.reason.text = "clones trial " + Text(donor) + " of step " + Text(source.newest->step) +
                     " (" + objective_.metric + " " + FormatShort(source.value) + ") at step " +
                     Text(turn.reason.step) + ": " + turn.reason.text + ", among the last " +
                     Text(standing.ends) + "; explores " +
                     DescribeChanges(source.config, turn.config) + how;
  return turn;
}

std::pair<Config, std::string> Pbt::ConfigFrom(const Member& source, TrialNumber trial,
                                               int64_t decisions) const {
  Config explored = Explore(space_, source.config, options_.exploration, seed_, trial, decisions);
  if (!options_.bandit) return {std::move(explored), ""};
  std::vector<Config> training;
  for (const auto& [number, member] : members_) {
    if (number == trial) continue;
    const bool clones = member.turn && member.turn->donor;
    training.push_back(clones ? member.turn->config : member.config);
  }
  const double better = objective_.mode == Mode::kMax ? 1 : -1;
  const int64_t interval = source.step.value / options_.interval + 1;
  auto promise = MostPromising(space_, explored, options_.exploration, gains_, training, interval,
                               better * source.value, seed_, trial, decisions);
  if (!promise) return {std::move(explored), "; too little is known yet for a model"};
  return {std::move(promise->config), ", where a model of " +
                                          Text(static_cast<int64_t>(promise->gains)) +
                                          " gains expects one of " + FormatShort(promise->gain) +
                                          " ± " + FormatShort(promise->deviation)};
}

bool Pbt::IsBefore(const Entry& a, const Entry& b) const {
  if (objective_.Better(a.value, b.value)) return true;
  return !objective_.Better(b.value, a.value) && a.trial < b.trial;
}

Pbt::Standing Pbt::StandingOf(TrialNumber trial, double value) const {
  std::vector<Entry> ranked;
  for (const auto& [number, member] : members_) {
    if (member.ranked && number != trial) ranked.push_back({number, member.value});
  }
  ranked.push_back({trial, value});
  std::ranges::sort(ranked, [this](const Entry& a, const Entry& b) { return IsBefore(a, b); });
  const auto self = std::ranges::find(ranked, trial, &Entry::trial);
  return StandingAt(ranked, static_cast<size_t>(self - ranked.begin()));
}

Pbt::Standing Pbt::StandingAt(const std::vector<Entry>& ranked, size_t place) const {
  Standing standing{.rank = static_cast<int64_t>(place) + 1, .peers = std::ssize(ranked)};
  const double part = options_.fraction * static_cast<double>(ranked.size());
  standing.ends = std::min(static_cast<int64_t>(std::ceil(part - kRounding)), standing.peers / 2);
  standing.cutoff = ranked[static_cast<size_t>(standing.peers - standing.ends - 1)].value;
  if (standing.rank <= standing.peers - standing.ends) return standing;  // it does not clone
  for (const Entry& first : std::span(ranked).first(static_cast<size_t>(standing.ends))) {
    if (!objective_.Better(first.value, ranked[place].value)) continue;
    if (members_.at(first.trial).newest) standing.donors.push_back(first.trial);
  }
  return standing;
}

bool Pbt::CanMoreJoin() const {
  const bool may_create =
      !exhausted_ && (options_.max_trials == 0 || created_ < options_.max_trials);
  return may_create && joined_ < options_.population;
}

bool Pbt::DoOthersWait(TrialNumber trial) const {
  if (CanMoreJoin()) return true;
  return std::ranges::any_of(members_, [trial](const auto& member) {
    return member.second.paused && member.first != trial;
  });
}

bool Pbt::IsRankedAt(const Member& member, Step step) const {
  return IntervalUpTo(step) > IntervalUpTo(member.step);
}

Step Pbt::IntervalUpTo(Step step) const {
  return Step(step.value - step.value % options_.interval);
}

const Pbt::Member& Pbt::MemberOf(const TrialView& trial) const {
  static const Member unknown;
  const auto found = members_.find(trial.id.number);
  return found == members_.end() ? unknown : found->second;
}

std::optional<Step> Pbt::NextMilestone(const TrialView& trial, Step after) const {
  const Step from = IntervalUpTo(std::max(after, MemberOf(trial).step));
  if (from.value >= options_.max.value - options_.interval) return std::nullopt;
  return Step(from.value + options_.interval);
}

// ---- what free slots are for ---------------------------------------------------------------

NextMove Pbt::Next(const SweepView& sweep) const {
  if (sweep.may_create && joined_ < options_.population) return StartNew{};
  for (const auto& [number, member] : members_) {
    if (!member.turn || !sweep.paused.contains(number)) continue;
    const Turn& turn = *member.turn;
    Promote promote{.trial = number, .reason = turn.reason};
    if (turn.donor) promote.donor = turn.donor, promote.config = turn.config;
    return promote;
  }
  // If no other can arrive, for example because a user holds one, a waiting member continues.
  if (options_.synchronous && sweep.running + sweep.waiting > 0) return Wait{};
  const std::pair<const TrialNumber, Member>* turn = nullptr;
  for (const auto& member : members_) {
    if (!sweep.paused.contains(member.first)) continue;
    if (turn == nullptr || member.second.decisions < turn->second.decisions) turn = &member;
  }
  if (turn != nullptr) {
    return Promote{.trial = turn->first,
                   .reason = {.rule = Rule(),
                              .value = turn->second.value,
                              .text = "continues: it has the fewest decisions of the waiting "
                                      "members, " +
                                      Text(turn->second.decisions)}};
  }
  if (!sweep.may_create) return StartNew{};
  if (sweep.running + sweep.waiting > 0) return Wait{};
  return Done{"the population of " + Text(options_.population) + " has ended"};
}

// ---- what was observed ---------------------------------------------------------------------

void Pbt::Observe(const Event& event) {
  AddMember(event.fact);
  if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) {
    Forget(dropped->checkpoint);
  } else if (std::holds_alternative<SearchExhausted>(event.fact)) {
    exhausted_ = true;
  } else if (const auto trial = TrialOf(event.fact)) {
    ObserveMember(trial->number, event.fact);
  }
  if (!options_.synchronous || std::holds_alternative<TrialReported>(event.fact)) return;
  RankAll();
  Retain();
}

void Pbt::AddMember(const Fact& fact) {
  if (const auto* created = std::get_if<TrialCreated>(&fact)) {
    members_[created->trial.number].config = created->config;
    ++created_;
    ++joined_;
  } else if (const auto* reopened = std::get_if<TrialReopened>(&fact)) {
    const TrialRecord& record = reopened->record;
    if (Failed(record.state)) ++joined_;
    members_[record.id.number] = {.config = record.config};
    ForgetAllBut(record);
  }
}

// The record of a trial that is reopened lists the checkpoints that still exist. The others were
// deleted while the trial had ended, so nothing can be cloned from them.
void Pbt::ForgetAllBut(const TrialRecord& record) {
  std::vector<CheckpointId> gone;
  for (const auto& [number, member] : members_) {
    if (!member.turn || !member.turn->donor || member.turn->donor->trial != record.id) continue;
    const CheckpointId& donor = *member.turn->donor;
    if (std::ranges::none_of(record.checkpoints, [&](const KeptCheckpoint& kept) {
          return kept.attempt == donor.attempt && kept.ref.step == donor.step;
        }))
      gone.push_back(donor);
  }
  for (const CheckpointId& checkpoint : gone) Forget(checkpoint);
}

void Pbt::Forget(const CheckpointId& checkpoint) {
  for (auto& [number, member] : members_) {
    if (member.newest == checkpoint) member.newest.reset();
    if (!member.turn || member.turn->donor != checkpoint) continue;
    member.turn->donor.reset();
    member.turn->reason.text +=
        "; that checkpoint was deleted, so it continues from its own checkpoint";
  }
}

void Pbt::ObserveMember(TrialNumber trial, const Fact& fact) {
  const auto found = members_.find(trial);
  if (found == members_.end()) return;
  Member& member = found->second;
  if (const auto* reported = std::get_if<TrialReported>(&fact)) {
    const Report& report = reported->report;
    if (!IsRankedAt(member, report.step)) return;
    member.value = objective_.ValueIn(report.metrics);
    AddGain(member, report.step, member.value);
    member.ranked = true;
    member.step = report.step;
    member.base = member.value;
    ++member.decisions;
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&fact)) {
    const AttemptId& attempt = saved->attempt;
    if (attempt.number > member.foreign_attempts)
      member.newest = CheckpointId{attempt.trial, attempt.number, saved->checkpoint.step};
  } else if (const auto* decided = std::get_if<TrialDecided>(&fact)) {
    const Verdict& verdict = decided->verdict;
    if (verdict.kind == VerdictKind::kExploit) {
      member = {.config = verdict.config,
                .step = verdict.donor.step,
                .base = BaseOf(verdict.donor),
                .decisions = member.decisions,
                .foreign_attempts = decided->attempt.number};
    }
    member.paused = verdict.kind == VerdictKind::kPause && verdict.reason.rule == Rule();
  } else if (std::holds_alternative<AttemptEnded>(fact)) {
    member.gang_ended = member.paused;  // also if the gang failed while it ended
  } else if (const auto* promoted = std::get_if<TrialPromoted>(&fact)) {
    if (promoted->donor) {
      member = {.config = *promoted->config,
                .step = promoted->donor->step,
                .base = BaseOf(*promoted->donor),
                .decisions = member.decisions};
    }
    member.paused = member.gang_ended = false;
    member.turn.reset();
  } else if (std::holds_alternative<AttemptAssigned>(fact)) {
    member.paused = member.gang_ended = false;
    member.turn.reset();
  } else if (const auto* ended = std::get_if<TrialEnded>(&fact)) {
    if (Failed(ended->state)) --joined_;
    members_.erase(found);
  }
}

// Stores the gain of the configuration since the last decision.
void Pbt::AddGain(const Member& member, Step step, double value) {
  const double better = objective_.mode == Mode::kMax ? 1 : -1;
  const double gain = better * (value - member.base);
  if (!options_.bandit || !std::isfinite(gain)) return;
  if (gains_.size() == kGainsMax) gains_.erase(gains_.begin());
  gains_.push_back({.config = member.config,
                    .interval = step.value / options_.interval,
                    .before = better * member.base,
                    .gain = gain});
}

double Pbt::BaseOf(const CheckpointId& donor) const {
  const auto found = members_.find(donor.trial.number);
  return found != members_.end() && found->second.step == donor.step
             ? found->second.value
             : std::numeric_limits<double>::quiet_NaN();
}

void Pbt::RankAll() {
  const auto waits = [](const auto& member) {
    return member.second.gang_ended && !member.second.turn;
  };
  if (!options_.synchronous || CanMoreJoin() || !std::ranges::all_of(members_, waits)) return;
  std::vector<Entry> ranked;
  for (const auto& [number, member] : members_) ranked.push_back({number, member.value});
  std::ranges::sort(ranked, [this](const Entry& a, const Entry& b) { return IsBefore(a, b); });
  for (size_t place = 0; place < ranked.size(); ++place) {
    Member& member = members_.at(ranked[place].trial);
    const Standing standing = StandingAt(ranked, place);
    Turn turn = TurnOf(ranked[place].trial, standing, member.decisions - 1,
                       ReasonFor(standing, member.value, member.step));
    if (!turn.donor) {
      turn.reason.text = "continues at step " + Text(member.step) + ": " + turn.reason.text;
    }
    member.turn = std::move(turn);  // decisions on later members depend on it
  }
}

void Pbt::Retain() {
  retained_.clear();
  for (const auto& [number, member] : members_) {
    if (member.turn && member.turn->donor) retained_.insert(*member.turn->donor);
  }
}

void Pbt::Adapt(const SweepSpec& spec) {
  options_ = OptionsOf(spec);
  space_ = spec.space;
  exhausted_ = false;
  if (!options_.synchronous) {
    for (auto& [number, member] : members_) member.turn.reset();
  }
  RankAll();
  Retain();
}

void Pbt::Save(ArchiveWriter& archive) const {
  archive(members_, created_, joined_, exhausted_, gains_);
}

void Pbt::Load(ArchiveReader& archive) {
  archive(members_, created_, joined_, exhausted_, gains_);
  Retain();
}

}  // namespace attune::schedulers
