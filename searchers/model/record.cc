#include "searchers/model/record.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/base/numbers.h"
#include "core/log/fields.h"
#include "core/space/domain.h"
#include "searchers/model/reserve.h"

namespace attune::searchers {
namespace {

// FNV-1a over the bits of each coordinate. All absent coordinates are equal.
uint64_t Hash(const Point& point) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const double coordinate : point) {
    const uint64_t bits =
        std::isnan(coordinate) ? ~uint64_t{0} : std::bit_cast<uint64_t>(coordinate);
    for (int shift = 0; shift < 64; shift += 8) {
      hash ^= bits >> shift & 0xff;
      hash *= 0x100000001b3;
    }
  }
  return hash;
}

double Violation(const Constraint& constraint, const Metrics& metrics) {
  const auto found = metrics.find(constraint.metric);
  if (found == metrics.end() || !std::isfinite(found->second)) return kInfinity;
  return std::max({0.0, constraint.min.value_or(-kInfinity) - found->second,
                   found->second - constraint.max.value_or(kInfinity)});
}

}  // namespace

Record::Record(const SweepSpec& spec)
    : cube_(spec.space),
      objectives_(spec.objectives),
      constraints_(spec.constraints),
      choices_(cube_.size()) {}

std::optional<uint32_t> Record::Find(TrialNumber number) const {
  if (number.value >= size()) return std::nullopt;
  return number.value;
}

uint64_t Record::SlotOf(size_t dimension, const Value& value) {
  if (cube_.dimensions()[dimension].kind != Cube::Kind::kChoice) {
    if (const auto* integer = std::get_if<int64_t>(&value))
      return std::bit_cast<uint64_t>(*integer);
    return std::bit_cast<uint64_t>(std::get<double>(value));
  }
  std::vector<Value>& choices = choices_[dimension];
  const auto found = std::ranges::find(choices, value);
  const auto slot = static_cast<uint64_t>(found - choices.begin());
  if (found == choices.end()) choices.push_back(value);
  return slot;
}

Value Record::ValueOf(size_t dimension, uint64_t slot) const {
  const Cube::Dimension& about = cube_.dimensions()[dimension];
  if (about.kind == Cube::Kind::kChoice) return choices_[dimension][slot];
  const Domain& domain = cube_.space().parameters()[about.parameter].domain;
  if (std::holds_alternative<IntDomain>(domain)) return std::bit_cast<int64_t>(slot);
  return std::bit_cast<double>(slot);
}

// REQUIRES: the configuration lies in the space.
void Record::KeepValues(uint32_t number, const Config& config) {
  for (size_t i = 0; i < cube_.size(); ++i) {
    const Cube::Dimension& dimension = cube_.dimensions()[i];
    const Parameter& parameter = cube_.space().parameters()[dimension.parameter];
    const Value* value = config.Find(parameter.name);
    if (value == nullptr) continue;
    values_[number * cube_.size() + i] = SlotOf(i, Admit(parameter.domain, *value).value());
  }
}

// An edit changes only ranges, so the conditions hold as when the trial was created.
Config Record::ConfigOf(uint32_t number) const {
  const SearchSpace& space = cube_.space();
  Config config;
  size_t next = 0;
  for (const size_t place : space.order()) {
    const Parameter& parameter = space.parameters()[place];
    const auto* constant = std::get_if<ConstantDomain>(&parameter.domain);
    const size_t dimension = constant != nullptr ? 0 : next++;
    if (!space.IsActive(parameter, config)) continue;
    config.Set(parameter.name,
               constant != nullptr
                   ? constant->value
                   : ValueOf(dimension, values_[number * cube_.size() + dimension]));
  }
  return config;
}

void Record::SetPoint(uint32_t number, const Config& config) {
  const auto point = cube_.Place(config);
  Trial& trial = trials_[number];
  trial.placed = point.has_value();
  SetOutcome(trial, trial.outcome);
  const auto row = points_.begin() + static_cast<ptrdiff_t>(number * cube_.size());
  std::ranges::copy(point.value_or(Point(cube_.size(), kAbsent)), row);
  if (point && cube_.IsFinite()) tried_.insert(Hash(*point));
}

void Record::SetOutcome(Trial& trial, Standing outcome) const {
  trial.outcome = outcome;
  trial.standing = trial.placed ? outcome : Standing::kNone;
}

void Record::Restart(uint32_t number, const Config& config) {
  Trial& trial = trials_[number];
  trial = Trial{};
  SetPoint(number, config);
  trial.has_values = trial.placed;
  if (trial.has_values) KeepValues(number, config);
}

void Record::AddReport(uint32_t number, const Report& report) {
  Trial& trial = trials_[number];
  trial.step = std::max(trial.step, report.step);
  const auto values = ValuesThatCount(objectives_, constraints_, report.metrics);
  if (!values.empty()) {
    const auto loss = [&](size_t i) {
      return objectives_[i].mode == Mode::kMin ? values[i] : -values[i];
    };
    bool is_dominated = trial.has_value;
    for (size_t i = 0; i < objectives(); ++i)
      is_dominated = is_dominated && Result(number, i) <= loss(i);
    if (is_dominated) return;
    trial.value = loss(0);
    for (size_t i = 1; i < objectives(); ++i) {
      results_[number * (objectives() - 1) + i - 1] = loss(i);
    }
    trial.has_value = true;
    return;
  }
  if (constraints_.empty() || ValuesThatCount(objectives_, {}, report.metrics).empty()) return;
  double violation = 0;
  for (const Constraint& constraint : constraints_) {
    violation += Violation(constraint, report.metrics);
  }
  trial.violation = trial.has_violation ? std::min(trial.violation, violation) : violation;
  trial.has_violation = true;
}

Standing Record::StandingAtEnd(const Trial& trial, TrialState state) const {
  if (state == TrialState::kFailed) return Standing::kFailed;
  if (trial.has_value) {
    return state == TrialState::kCompleted ? Standing::kComplete : Standing::kCut;
  }
  if (trial.has_violation) return Standing::kInfeasible;
  const bool has_no_report = state != TrialState::kCompleted && trial.step == Step(0);
  return has_no_report ? Standing::kNone : Standing::kFailed;
}

std::optional<Record::News> Record::Observe(const Event& event) {
  if (const auto* begun = std::get_if<SweepCreated>(&event.fact)) {
    for (const WarmStart& start : *begun->warm_start)
      prior_.insert(prior_.end(), start.taken.begin(), start.taken.end());
    if (prior_.empty()) return std::nullopt;
    return News{0, Change::kPrior};
  }
  if (const auto* created = std::get_if<TrialCreated>(&event.fact)) {
    const uint32_t number = created->trial.number.value;
    const bool is_new = number >= size();
    if (is_new) {
      const size_t count = size_t{number} + 1;
      ReserveWithSlack(trials_, count);
      ReserveWithSlack(points_, count * cube_.size());
      ReserveWithSlack(values_, count * cube_.size());
      ReserveWithSlack(results_, count * (objectives() - 1));
      trials_.resize(count, Trial{.standing = Standing::kNone, .outcome = Standing::kNone});
      points_.resize(trials_.size() * cube_.size(), kAbsent);
      values_.resize(points_.size());
      results_.resize(trials_.size() * (objectives() - 1));
    }
    Restart(number, created->config);
    return News{number, is_new ? Change::kNew : Change::kRestarted};
  }
  const auto id = TrialOf(event.fact);
  const auto number = id ? Find(id->number) : std::nullopt;
  if (!number) return std::nullopt;
  Trial& trial = trials_[*number];
  const auto change_outcome = [&](Standing outcome) -> std::optional<News> {
    const Standing before = trial.standing;
    SetOutcome(trial, outcome);
    if (trial.standing == before) return std::nullopt;
    return News{*number, Change::kStandingChanged};
  };
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    AddReport(*number, reported->report);
    return std::nullopt;
  }
  if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
    const Verdict& verdict = decided->verdict;
    if (verdict.kind == VerdictKind::kExploit) {
      Restart(*number, verdict.config);
      return News{*number, Change::kRestarted};
    }
    if (verdict.kind != VerdictKind::kPause || IsOrder(verdict.reason.rule)) {
      return std::nullopt;
    }
    return change_outcome(StandingAtEnd(trial, TrialState::kStopped));
  }
  if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
    if (!promoted->config) return change_outcome(Standing::kRunning);
    Restart(*number, *promoted->config);
    return News{*number, Change::kRestarted};
  }
  if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) {
    return change_outcome(StandingAtEnd(trial, ended->state));
  }
  if (std::holds_alternative<TrialReopened>(event.fact)) return change_outcome(Standing::kRunning);
  return std::nullopt;
}

void Record::Adapt(const SweepSpec& spec) {
  objectives_ = spec.objectives;
  constraints_ = spec.constraints;
  if (spec.space == cube_.space()) return;
  cube_ = Cube(spec.space);
  tried_.clear();
  for (uint32_t number = 0; number < size(); ++number) {
    if (trials_[number].has_values) SetPoint(number, ConfigOf(number));
  }
}

bool Record::Better(uint32_t a, uint32_t b) const {
  const Trial& one = trials_[a];
  const Trial& other = trials_[b];
  if (one.standing != other.standing) return one.standing < other.standing;
  if (one.standing == Standing::kCut && one.step != other.step) return one.step > other.step;
  if (one.standing <= Standing::kCut) {
    for (size_t i = 0; i < objectives(); ++i) {
      if (Result(a, i) != Result(b, i)) return Result(a, i) < Result(b, i);
    }
  }
  if (one.standing == Standing::kInfeasible && one.violation != other.violation) {
    return one.violation < other.violation;
  }
  return a < b;
}

bool Record::HasTried(const Point& point) const { return tried_.contains(Hash(point)); }

void Record::Save(ArchiveWriter& archive) const {
  archive(size());
  for (const Trial& trial : trials_) {
    archive(trial.value, trial.violation, trial.step, trial.outcome, trial.has_value,
            trial.has_violation, trial.placed, trial.has_values);
  }
  std::vector<uint64_t> tried(tried_.begin(), tried_.end());
  std::ranges::sort(tried);
  archive(values_, points_, results_, choices_, tried, prior_);
}

void Record::Load(ArchiveReader& archive) {
  uint32_t count = 0;
  archive(count);
  trials_.clear();
  for (uint32_t i = 0; archive.ok() && i < count; ++i) {
    Trial& trial = trials_.emplace_back();
    archive(trial.value, trial.violation, trial.step, trial.outcome, trial.has_value,
            trial.has_violation, trial.placed, trial.has_values);
    SetOutcome(trial, trial.outcome);
  }
  std::vector<uint64_t> tried;
  archive(values_, points_, results_, choices_, tried, prior_);
  const size_t slots = trials_.size() * cube_.size();
  if (!archive.ok() || points_.size() != slots || values_.size() != slots ||
      results_.size() != trials_.size() * (objectives() - 1) || choices_.size() != cube_.size()) {
    trials_.clear();
    points_.clear();
    results_.clear();
    values_.clear();
    return archive.Fail();
  }
  tried_ = {tried.begin(), tried.end()};
}

}  // namespace attune::searchers
