#include "server/http/routes/trials/schedule.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/log/fixed_code.h"
#include "core/space/schedule.h"
#include "server/http/answers/answers.h"
#include "server/http/transport/problem.h"
#include "sweepfile/codec.h"
#include "sweepfile/keys.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {
namespace {

// The checkpoint in a folder of an executor, such as …/trials/17/checkpoints/step-900-attempt-2.
std::optional<CheckpointId> CheckpointIn(SweepId sweep, const std::filesystem::path& folder) {
  int64_t step = 0;
  uint32_t attempt = 0;
  uint32_t trial = 0;
  const std::string name = folder.filename();
  const std::string owner = folder.parent_path().parent_path().filename();
  if (std::sscanf(name.c_str(), "step-%" SCNd64 "-attempt-%" SCNu32, &step, &attempt) != 2 ||
      std::sscanf(owner.c_str(), "%" SCNu32, &trial) != 1)
    return std::nullopt;
  return CheckpointId{{sweep, TrialNumber(trial)}, attempt, Step(step)};
}

// A sweep with only this trial, whose schedule reproduces the trial's training.
SweepSpec ReproducingSweep(SweepSpec spec, const TrialRow& trial,
                           const Lineages::Lineage& lineage) {
  ConfigSchedule schedule;
  const Config* before = nullptr;
  for (const auto& [step, part] : lineage) {
    const bool is_new = step > Step(0) && !(part.config == *before);
    before = &part.config;
    if (is_new) schedule.emplace(step, part.config);
  }
  const std::string name = spec.name + "-" + std::to_string(trial.id.number.value);
  if (name.size() <= sweepfile::kMaxNameChars) spec.name = name;
  spec.warm_start.clear();
  spec.initial_points = {lineage.begin()->second.config};
  if (schedule.empty()) {
    spec.scheduler = {.name = "fifo"};
  } else {
    spec.scheduler = {.name = "pbt_replay", .options = {{"schedule", FormatSchedule(schedule)}}};
  }
  if (spec.max_step > Step(0) && trial.step > Step(0)) spec.max_step = trial.step;
  spec.stop = {.max_trials = 1};
  if (trial.patch) FixCode(spec, trial.patch->code);
  return spec;
}

}  // namespace

void Lineages::Observe(const Event& event) {
  if (const auto* created = std::get_if<TrialCreated>(&event.fact)) {
    const TrialNumber trial = created->trial.number;
    now_[trial] = Add({Step(0), {created->config, trial, 0, 1, {}}, kNone});
    configs_[trial] = created->config;
  } else if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
    const TrialNumber trial = assigned->attempt.trial.number;
    Part part{.config = configs_[trial],
              .trial = trial,
              .attempt = assigned->attempt.number,
              .workers = std::max(1, static_cast<int>(assigned->ranks.size())),
              .checkpoint = {}};
    if (assigned->resume)
      part.checkpoint = CheckpointIn(assigned->attempt.trial.sweep, assigned->resume->path);
    Resume(std::move(part), assigned->resume ? assigned->resume->step : Step(0));
    at_attempt_[{trial, assigned->attempt.number}] = now_[trial];
  } else if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
    const Verdict& verdict = decided->verdict;
    if (verdict.kind == VerdictKind::kExploit)
      Clone(decided->attempt.trial.number, verdict.donor, verdict.config);
  } else if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
    const TrialNumber trial = promoted->trial.number;
    if (promoted->donor) {
      Clone(trial, *promoted->donor, promoted->config.value_or(configs_[trial]));
    } else if (promoted->config) {
      configs_[trial] = *promoted->config;  // used by its next attempt
    }
  }
}

Lineages::Lineage Lineages::LineageOf(TrialNumber trial) const {
  Lineage lineage;
  for (int at = now_.at(trial); at != kNone; at = links_[static_cast<size_t>(at)].before) {
    const Link& link = links_[static_cast<size_t>(at)];
    lineage.emplace(link.from, link.part);
  }
  return lineage;
}

void Lineages::Clone(TrialNumber trial, const CheckpointId& donor, const Config& config) {
  now_[trial] = at_attempt_.at({donor.trial.number, donor.attempt});
  configs_[trial] = config;
}

// An attempt that resumes from an earlier step trains the later steps again.
void Lineages::Resume(Part part, Step from) {
  int& at = now_[part.trial];
  while (at != kNone && links_[static_cast<size_t>(at)].from >= from)
    at = links_[static_cast<size_t>(at)].before;
  const Part* before = at == kNone ? nullptr : &links_[static_cast<size_t>(at)].part;
  if (before != nullptr && before->config == part.config && before->workers == part.workers) return;
  at = Add({before == nullptr ? Step(0) : from, std::move(part), at});
}

int Lineages::Add(Link link) {
  links_.push_back(std::move(link));
  return static_cast<int>(links_.size()) - 1;
}

Result<Lineages::Lineage> Schedules::LineageOf(const TrialRow& trial, const GangSpec& gang) {
  const SweepId sweep = trial.id.sweep;
  const auto branches = reader_.Branches(sweep, EventSeq(0), 1);
  if (!branches.ok()) return branches.error();
  if (branches->empty() && gang.min_workers == 0)
    return Lineages::Lineage{{Step(0), {trial.config, trial.id.number, 1, gang.workers, {}}}};

  Lineages lineages;
  const std::lock_guard alone(one_at_a_time_);
  const Status read = reader_.Events(
      sweep,
      [&](const Event& event) {
        lineages.Observe(event);
        return true;
      },
      Reader::EventSelection::kLineages);
  if (!read.ok()) return read.error();
  return lineages.LineageOf(trial.id.number);
}

Response Schedules::Get(const Request& request, const Target& target) {
  const auto trial = reader_.Trial(target.trial);
  if (!trial.ok()) return Problem(trial.error());
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto lineage = LineageOf(*trial, sweep->spec.gang);
  if (!lineage.ok()) return Problem(lineage.error());
  rest::Schedule schedule{.sweep = ToString(target.sweep()),
                          .trial = target.trial.number.value,
                          .step = trial->step.value,
                          .file = sweepfile::ResolvedYaml(ReproducingSweep(
                              VisibleSpec(request, sweep->spec), *trial, *lineage))};
  if (trial->best) schedule.best = *trial->best;
  for (const auto& [step, part] : *lineage) {
    schedule.schedule.push_back({.step = step.value,
                                 .trial = part.trial.value,
                                 .attempt = part.attempt,
                                 .workers = part.workers,
                                 .config = sweepfile::ToJson(part.config)});
    if (part.checkpoint) schedule.schedule.back().checkpoint = ToString(*part.checkpoint);
  }
  return Render(schedule);
}

}  // namespace attune::server
