#include "server/http/answers/answers.h"

#include <utility>

#include "core/log/secret_names.h"
#include "server/http/answers/render.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {
namespace {

// A sweep that has ended is neither waiting nor stopping, but its deletion may be scheduled.
LiveSweep LiveSweepOf(const Brain& brain, const Answers::Blockers& blockers, SweepId id) {
  const Sweep* sweep = brain.state().Find(id);
  if (sweep == nullptr) return {.deletion = RenderDeletion(brain.state(), id, WallTime())};
  LiveSweep live{.waiting_reason = brain.Waiting(*sweep)};
  if (!live.waiting_reason.empty()) live.waiting_reason += blockers(id);
  if (sweep->stopping_as) live.end_state = Name(*sweep->stopping_as);
  return live;
}

// Whether a trial only waits for free slots.
bool WaitsForSlots(const Brain& brain, const Trial& trial) {
  if (trial.state != TrialState::kPending || trial.live) return false;
  if (trial.not_before > brain.state().last_time) return false;
  return !brain.Waiting(*brain.state().Find(trial.id.sweep)).empty();
}

std::string WaitingReason(const Brain& brain, const Answers::Blockers& blockers,
                          const TrialId& id) {
  const Trial* trial = brain.state().Find(id);
  if (trial == nullptr) return "";
  const std::string waiting = brain.Waiting(*trial);
  if (waiting.empty() || !WaitsForSlots(brain, *trial)) return waiting;
  return waiting + blockers(id.sweep);
}

}  // namespace

Response JsonAnswer(const Json& json, int status) {
  Response response{.status = status, .content_type = "application/json"};
  response.body = Dump(json);
  response.Set("Cache-Control", "no-store");
  return response;
}

SweepSpec VisibleSpec(const Request& request, SweepSpec spec) {
  if (!request.is_admin) spec.program.environment.clear();
  return spec;
}

Response Answers::Sweep(const Request& request, SweepId id, int status,
                        const std::string& effect) const {
  const auto sweep = reader_.Sweep(id);
  if (!sweep.ok()) return Problem(sweep.error());
  auto file = reader_.FileOf(id);
  if (!file.ok()) return Problem(file.error());
  const Program& program = sweep->spec.program;
  // Not the file as it was sent, because its comments may repeat hidden values.
  if (!request.is_admin && !program.environment.empty())
    file->text = sweepfile::ResolvedYaml(VisibleSpec(request, sweep->spec));
  LiveSweep live;
  backend_.QueryState([&](const Brain& brain) { live = LiveSweepOf(brain, blockers_, id); });
  rest::SweepDetail detail =
      RenderDetail(*sweep, RungsOf(sweep->spec), live, std::move(file).value());
  if (request.is_admin) detail.warnings = SecretWarnings(program);
  if (sweep->edit) {
    const auto first = reader_.FirstSpecOf(id);
    if (!first.ok()) return Problem(first.error());
    detail.resolved_file_as_sent = sweepfile::ResolvedYaml(VisibleSpec(request, *first));
    detail.resolved_file = sweepfile::ResolvedYaml(VisibleSpec(request, sweep->spec));
  }
  if (effect.empty()) return Render(detail, status);
  return Render(rest::SteeredSweep{{std::move(detail)}, effect}, status);
}

Response Answers::Trial(const TrialId& id, int status, const std::string& effect) const {
  const auto detail = reader_.Detail(id);
  if (!detail.ok()) return Problem(detail.error());
  std::string waiting;
  backend_.QueryState([&](const Brain& brain) { waiting = WaitingReason(brain, blockers_, id); });
  const auto sweep = reader_.Sweep(id.sweep);
  if (!sweep.ok()) return Problem(sweep.error());
  rest::TrialDetail rendered = RenderDetail(*detail, sweep->spec, waiting);
  if (effect.empty()) return Render(rendered, status);
  return Render(rest::SteeredTrial{{std::move(rendered)}, effect}, status);
}

std::vector<rest::Sweep> Answers::Sweeps(std::span<const SweepRow> rows) const {
  std::vector<LiveSweep> live;
  backend_.QueryState([&](const Brain& brain) {
    for (const SweepRow& row : rows) live.push_back(LiveSweepOf(brain, blockers_, row.id));
  });
  std::vector<rest::Sweep> list;
  for (size_t i = 0; i < rows.size(); ++i)
    list.push_back(RenderSweep(rows[i], RungsOf(rows[i].spec), live[i]));
  return list;
}

std::vector<rest::Trial> Answers::Trials(std::span<const TrialRow> rows) const {
  std::vector<std::string> waiting;
  backend_.QueryState([&](const Brain& brain) {
    for (const TrialRow& row : rows) waiting.push_back(WaitingReason(brain, blockers_, row.id));
  });
  std::vector<rest::Trial> list;
  for (size_t i = 0; i < rows.size(); ++i) list.push_back(RenderTrial(rows[i], waiting[i]));
  return list;
}

std::vector<Step> Answers::RungsOf(const SweepSpec& spec) const {
  const auto scheduler = algorithms_.MakeScheduler(spec);
  if (!scheduler.ok()) return {};  // the program has no such scheduler
  return (*scheduler)->Rungs();
}

}  // namespace attune::server
