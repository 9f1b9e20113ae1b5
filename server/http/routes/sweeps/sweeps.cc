#include "server/http/routes/sweeps/sweeps.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/result.h"
#include "core/brain/warm_start.h"
#include "core/log/secret_names.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

Status CheckDirectory(const Request& request) {
  const std::string directory = request.Query("directory").value_or("");
  if (directory.empty() || directory.front() == '/') return {};
  return Error{ErrorCode::kInvalid, "directory: " + directory +
                                        " is a relative path; give the absolute one of the folder "
                                        "that the file's paths are relative to"};
}

// The metrics that the sweep file names and that trials have logged.
std::set<std::string> MetricsOf(const SweepRow& sweep) {
  std::set<std::string> names(sweep.logged.begin(), sweep.logged.end());
  for (const Objective& each : sweep.spec.objectives) names.insert(each.metric);
  for (const Constraint& each : sweep.spec.constraints) names.insert(each.metric);
  return names;
}

// The path of the sweep file; empty if the request does not contain it.
std::string PathOf(const Request& request) {
  const std::string directory = request.Query("directory").value_or("");
  const std::string file = request.Query("file").value_or("");
  if (directory.empty() || file.empty()) return "";
  return (std::filesystem::path(directory) / file).lexically_normal().string();
}

}  // namespace

sweepfile::Parsed Sweeps::Parse(const Request& request) const {
  sweepfile::ParseOptions parse{
      .directory_from = "the query `directory`", .algorithms = &algorithms_, .program_fault = {}};
  if (const auto file = request.Query("file"); file && !file->empty()) parse.file = *file;
  parse.directory = request.Query("directory").value_or("");
  return sweepfile::ParseSweep(request.body, parse);
}

std::optional<Response> Sweeps::RefuseUndefinedSecrets(const SweepSpec& spec) {
  const auto undefined = backend_.UndefinedSecrets(spec.program.secrets);
  if (!undefined.ok()) return Problem(undefined.error());
  if (undefined->empty()) return std::nullopt;
  std::string names;
  std::string commands;
  for (const std::string& name : *undefined) {
    names += (names.empty() ? "" : ", ") + name;
    commands += (commands.empty() ? "`" : ", `") + ("attune secret set " + name + "`");
  }
  return Problem(rest::ProblemType::kUndefinedSecret, "secrets: the server has no value of " +
                                                          names + "; set it with " + commands +
                                                          " on the server's host");
}

// Reads the results of earlier sweeps from the tables.
Result<std::vector<WarmStart>> Sweeps::WarmStartsOf(const SweepSpec& spec) {
  std::vector<WarmStart> starts;
  for (const SweepId from : spec.warm_start) {
    const auto earlier = reader_.Sweep(from);
    if (!earlier.ok()) {
      if (earlier.error().code != ErrorCode::kNotFound) return earlier.error();
      return Error{ErrorCode::kInvalid, "warm_start: there is no sweep " + ToString(from) +
                                            "; `attune sweep list` lists the existing ones"};
    }
    auto results = reader_.Results(from);
    if (!results.ok()) return results.error();
    auto start = TakeResults(spec, from, earlier->spec, std::move(results).value());
    if (!start.ok()) return start.error();
    starts.push_back(std::move(start).value());
  }
  return starts;
}

// The sweep that an earlier request with this key has created.
Result<std::optional<SweepId>> Sweeps::FindRequested(const std::string& key) {
  if (key.empty()) return std::optional<SweepId>();
  const auto earlier = reader_.FindRequest(SweepId(0), key);
  if (!earlier.ok()) return earlier.error();
  return *earlier ? SweepOf((*earlier)->fact) : std::nullopt;
}

Result<SweepId> Sweeps::CreateOrFind(CreateSweep command, const std::string& actor) {
  const std::string key = command.idempotency_key;
  auto taken = WarmStartsOf(*command.spec);
  if (!taken.ok()) return taken.error();
  command.warm_start = std::move(taken).value();
  const auto events = backend_.Execute(std::move(command), actor);
  if (!events.ok()) return events.error();
  if (!events->empty()) return std::get<SweepCreated>(events->front().fact).sweep;
  std::optional<SweepId> id;  // created by a concurrent request
  backend_.QueryState([&](const Brain& brain) {
    const auto& by_key = brain.state().by_key;
    if (const auto made = FindRequest(by_key, key); made != by_key.end()) id = made->second;
  });
  if (id) return *id;
  return Error{ErrorCode::kConflict,
               "the sweep of another request with this Idempotency-Key has "
               "ended and was deleted meanwhile; try again"};
}

Response Sweeps::Create(const Request& request, const Target&) {
  auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  if (auto reused = RefuseReusedKey(reader_, SweepId(0), *key)) return *std::move(reused);
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  sweepfile::Parsed parsed = Parse(request);
  if (!parsed.spec) return Refuse(parsed.faults);
  const auto earlier = FindRequested(*key);
  if (!earlier.ok()) return Problem(earlier.error());
  if (*earlier) return AnswerCreated(request, **earlier);
  if (auto refusal = RefuseUndefinedSecrets(*parsed.spec)) return *std::move(refusal);
  CreateSweep command{*std::move(parsed.spec), request.body, *std::move(key), request.actor};
  command.path = PathOf(request);
  const auto id = CreateOrFind(std::move(command), request.actor);
  return id.ok() ? AnswerCreated(request, *id) : RefuseBody(id.error(), request.body);
}

Response Sweeps::AnswerCreated(const Request& request, SweepId id) {
  Response created = answers_.Sweep(request, id, 201);
  if (created.status == 201) created.Set("Location", "/api/v1/sweeps/" + ToString(id));
  return created;
}

Response Sweeps::Validate(const Request& request, const Target&) {
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  const sweepfile::Parsed parsed = Parse(request);
  if (!parsed.spec) return Refuse(parsed.faults);
  if (auto refusal = RefuseUndefinedSecrets(*parsed.spec)) return *std::move(refusal);
  const auto taken = WarmStartsOf(*parsed.spec);
  if (!taken.ok()) return RefuseBody(taken.error(), request.body);
  rest::ValidatedSweep validated{.resolved = sweepfile::ToJson(*parsed.spec),
                                 .rungs = RenderSteps(answers_.RungsOf(*parsed.spec))};
  for (const WarmStart& start : *taken) validated.warm_start.push_back(start.text);
  validated.warnings = SecretWarnings(parsed.spec->program);
  return Render(validated);
}

Response Sweeps::List(const Request& request, const Target&) {
  const auto size = IntegerQuery(request, "page_size", kSweepsPageDefault, 1, kSweepsPageMax);
  if (!size.ok()) return Problem(size.error());
  const auto before = ParsePageToken("sweeps", request);
  if (!before.ok()) return Problem(before.error());
  std::optional<SweepId> bound;
  if (*before) bound = SweepId(**before);
  auto sweeps = reader_.Sweeps(bound, static_cast<int>(*size) + 1);
  if (!sweeps.ok()) return Problem(sweeps.error());

  std::string next;
  if (std::ssize(*sweeps) > *size) {
    sweeps->pop_back();
    next = PageToken("sweeps", sweeps->back().id.value);
  }
  return Render(rest::SweepList{.sweeps = answers_.Sweeps(*sweeps), .next_page_token = next});
}

Response Sweeps::Get(const Request& request, const Target& target) {
  return answers_.Sweep(request, target.sweep());
}

Response Sweeps::Resolved(const Request& request, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  return Render(
      rest::ResolvedSweep{.resolved = sweepfile::ToJson(VisibleSpec(request, sweep->spec))});
}

Response Sweeps::Curves(const Request& request, const Target& target) {
  constexpr std::string_view kOf = "curves";
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  std::string metric = request.Query("metric").value_or("");
  if (metric.empty()) metric = sweep->spec.objective().metric;
  const auto from = ParsePageToken(kOf, request);
  if (!from.ok()) return Problem(from.error());
  const TrialNumber first(static_cast<uint32_t>(from->value_or(0)));
  const auto curves = reader_.MetricCurves(target.sweep(), metric, first, {.stop = request.left});
  if (!curves.ok()) return Problem(curves.error());
  const std::set<std::string> known = MetricsOf(*sweep);
  const bool whole = !*from && !curves->next;
  if (whole && curves->trials.empty() && !known.contains(metric)) {
    std::string names;
    for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
    return Problem(rest::ProblemType::kInvalidRequest,
                   "metric: no trial of sweep " + ToString(sweep->id) + " has reported or logged " +
                       metric + "; the sweep's file and logs name " + names);
  }
  Response response{.content_type = "application/json"};
  response.body =
      CurvesToText(metric, *curves, curves->next ? PageToken(kOf, curves->next->value) : "");
  response.Set("Cache-Control", "no-store");
  return response;
}

Response Sweeps::Importance(const Request& request, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const SweepSpec& spec = sweep->spec;
  const std::string metric = request.Query("metric").value_or(spec.objective().metric);
  const auto objective = std::ranges::find(spec.objectives, metric, &Objective::metric);
  if (objective == spec.objectives.end()) {
    std::string metrics;
    for (const Objective& each : spec.objectives)
      metrics += (metrics.empty() ? "" : ", ") + each.metric;
    return Problem(rest::ProblemType::kInvalidRequest,
                   "metric: sweep " + ToString(sweep->id) + " does not optimise " + metric +
                       "; importance is available for " + metrics);
  }
  const auto results = reader_.Results(target.sweep());
  if (!results.ok()) return Problem(results.error());
  return Render(RenderImportance(metric, ImportancesOf(spec.space, *objective, *results)));
}

}  // namespace attune::server
