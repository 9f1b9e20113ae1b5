#include "server/http/answers/answers.h"

#include <utility>

#include "server/http/answers/render.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

// What the brain knows of a sweep now. An ended one is neither waiting nor stopping.
LiveSweep Now(const Brain& brain, const Pilots& pilots, SweepId id) {
  const Sweep* sweep = brain.state().Find(id);
  if (sweep == nullptr) return {};
  LiveSweep live{.waiting = brain.Waiting(*sweep)};
  if (!live.waiting.empty()) live.waiting += pilots.Hindering(id);
  if (sweep->stopping_as) live.stopping = Name(*sweep->stopping_as);
  return live;
}

// Whether nothing but room keeps it from starting.
bool LacksRoom(const Brain& brain, const Trial& trial) {
  if (trial.state != TrialState::kPending || trial.live) return false;
  if (trial.not_before > brain.state().last_time) return false;
  return !brain.Waiting(*brain.state().Find(trial.id.sweep)).empty();
}

std::string Waiting(const Brain& brain, const Pilots& pilots, const TrialId& id) {
  const Trial* trial = brain.state().Find(id);
  if (trial == nullptr) return "";
  const std::string waiting = brain.Waiting(*trial);
  const std::string hindering = waiting.empty() ? "" : pilots.Hindering(id.sweep);
  return hindering.empty() || !LacksRoom(brain, *trial) ? waiting : waiting + hindering;
}

}  // namespace

Response JsonAnswer(const Json& json, int status) {
  Response response{.status = status, .content_type = "application/json"};
  response.body = Dump(json);
  response.Set("Cache-Control", "no-store");
  return response;
}

Response Answers::Sweep(SweepId id, int status, const std::string& effect) const {
  const auto sweep = reader_.Sweep(id);
  if (!sweep.ok()) return Problem(sweep.error());
  auto file = reader_.SweepFile(id);
  if (!file.ok()) return Problem(file.error());
  LiveSweep live;
  backend_.Look([&](const Brain& brain) { live = Now(brain, pilots_, id); });
  Json json = SweepToJson(*sweep, RungsOf(sweep->spec), live);
  json["parameters"] = ParametersToJson(sweep->spec.space);
  json["file"] = std::move(file).value();
  if (!effect.empty()) json["effect"] = effect;
  return JsonAnswer(json, status);
}

Response Answers::Trial(const TrialId& id, int status, const std::string& effect) const {
  const auto detail = reader_.Detail(id);
  if (!detail.ok()) return Problem(detail.error());
  std::string waiting;
  backend_.Look([&](const Brain& brain) { waiting = Waiting(brain, pilots_, id); });
  Json json = DetailToJson(*detail, waiting);
  if (!effect.empty()) json["effect"] = effect;
  return JsonAnswer(json, status);
}

Json Answers::Sweeps(std::span<const SweepRow> rows) const {
  std::vector<LiveSweep> live;
  backend_.Look([&](const Brain& brain) {
    for (const SweepRow& row : rows) live.push_back(Now(brain, pilots_, row.id));
  });
  Json list = Json::array();
  for (size_t i = 0; i < rows.size(); ++i)
    list.push_back(SweepToJson(rows[i], RungsOf(rows[i].spec), live[i]));
  return list;
}

Json Answers::Trials(std::span<const TrialRow> rows) const {
  std::vector<std::string> waiting;
  backend_.Look([&](const Brain& brain) {
    for (const TrialRow& row : rows) waiting.push_back(Waiting(brain, pilots_, row.id));
  });
  Json list = Json::array();
  for (size_t i = 0; i < rows.size(); ++i) list.push_back(TrialToJson(rows[i], waiting[i]));
  return list;
}

std::vector<Step> Answers::RungsOf(const SweepSpec& spec) const {
  const auto scheduler = algorithms_.MakeScheduler(spec);
  if (!scheduler.ok()) return {};  // of a release that knew another scheduler
  return (*scheduler)->Rungs();
}

}  // namespace attune::server
