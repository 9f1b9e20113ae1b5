#include "server/http/api.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/brain/warm_start.h"
#include "server/http/problem.h"
#include "server/http/query.h"
#include "server/http/render.h"
#include "server/http/schedule.h"
#include "server/store/format_time.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {

// A path of the API: words, and the places of ids; `verb` follows the last colon.
struct Api::Route {
  std::string_view method;
  std::string_view path;
  std::string_view verb;
  Response (*handle)(Api&, const Request&, const Target&);
};

namespace {

constexpr const char* kApi = "/api/v1/";
constexpr const char* kSweeps = "/api/v1/sweeps";
constexpr const char* kSweep = "/api/v1/sweeps/{sweep}";
constexpr const char* kTrials = "/api/v1/sweeps/{sweep}/trials";
constexpr const char* kTrial = "/api/v1/sweeps/{sweep}/trials/{trial}";
constexpr const char* kCheckpoint =
    "/api/v1/sweeps/{sweep}/trials/{trial}/checkpoints/{checkpoint}";
constexpr const char* kContent =
    "/api/v1/sweeps/{sweep}/trials/{trial}/checkpoints/{checkpoint}/content";
constexpr const char* kExecutor = "/api/v1/executors/{executor}";

sweepfile::Parsed Parse(const Request& request, const Api::Options& options) {
  sweepfile::ParseOptions parse{.directory_from = "the query `directory`",
                                .algorithms = options.algorithms,
                                .program_exists = options.program_exists};
  if (const auto file = request.Query("file"); file && !file->empty()) parse.file = *file;
  parse.directory = request.Query("directory").value_or("");
  return sweepfile::ParseSweep(request.body, parse);
}

Status CheckDirectory(const Request& request) {
  const std::string directory = request.Query("directory").value_or("");
  if (directory.empty() || directory.front() == '/') return {};
  return Error{ErrorCode::kInvalid, "directory: " + directory +
                                        " is a relative path; give the absolute one of the folder "
                                        "that the file's paths are relative to"};
}

}  // namespace

Api::Api(Options options)
    : options_(std::move(options)),
      answers_(*options_.backend, *options_.reader, *options_.algorithms, pilots_),
      control_(*options_.backend, *options_.reader, answers_, *options_.algorithms),
      ask_tell_(*options_.backend, *options_.reader),
      replays_(*options_.reader, *options_.algorithms),
      schedules_(*options_.reader),
      metrics_(*options_.backend, *options_.reader, options_.version),
      checkpoints_(*options_.backend, *options_.reader),
      streams_(std::make_shared<std::atomic<int>>(0)) {}

template <auto handler>
Response Api::Own(Api& api, const Request& request, const Target& target) {
  return (api.*handler)(request, target);
}

template <auto part, auto handler>
Response Api::By(Api& api, const Request& request, const Target& target) {
  return ((api.*part).*handler)(request, target);
}

const std::vector<Api::Route>& Api::Routes() {
  constexpr auto kControl = &Api::control_;
  constexpr auto kAskTell = &Api::ask_tell_;
  constexpr auto kCheckpoints = &Api::checkpoints_;
  static const std::vector<Route> routes = {
      {"GET", "/livez", "", Own<&Api::Live>},
      {"GET", "/readyz", "", Own<&Api::Ready>},
      {"GET", "/version", "", Own<&Api::Version>},
      {"GET", kSweeps, "", Own<&Api::ListSweeps>},
      {"POST", kSweeps, "", Own<&Api::CreateSweep>},
      {"POST", kSweeps, "validate", Own<&Api::ValidateSweep>},
      {"GET", kSweep, "", Own<&Api::GetSweep>},
      {"DELETE", kSweep, "", By<kControl, &Control::DeleteSweep>},
      {"POST", kSweep, "pause", By<kControl, &Control::PauseSweep>},
      {"POST", kSweep, "resume", By<kControl, &Control::ResumeSweep>},
      {"POST", kSweep, "stop", By<kControl, &Control::StopSweep>},
      {"POST", kSweep, "kill", By<kControl, &Control::KillSweep>},
      {"POST", kSweep, "extend", By<kControl, &Control::ExtendSweep>},
      {"POST", kSweep, "edit", By<kControl, &Control::EditSweep>},
      {"POST", kSweep, "replay", By<&Api::replays_, &Replays::ReplaySweep>},
      {"PATCH", kSweep, "", By<kControl, &Control::EditSweep>},
      {"GET", kTrials, "", Own<&Api::ListTrials>},
      {"POST", kTrials, "", By<kControl, &Control::EnqueueTrial>},
      {"POST", kTrials, "ask", By<kAskTell, &AskTell::Ask>},
      {"GET", kTrial, "", Own<&Api::GetTrial>},
      {"POST", kTrial, "kill", By<kControl, &Control::KillTrial>},
      {"POST", kTrial, "retry", By<kControl, &Control::RetryTrial>},
      {"POST", kTrial, "continue", By<kControl, &Control::ContinueTrial>},
      {"POST", kTrial, "tell", By<kAskTell, &AskTell::Tell>},
      {"GET", "/api/v1/sweeps/{sweep}/checkpoints", "", By<kCheckpoints, &Checkpoints::List>},
      {"GET", kCheckpoint, "", By<kCheckpoints, &Checkpoints::Get>},
      {"DELETE", kCheckpoint, "", By<kCheckpoints, &Checkpoints::Drop>},
      {"GET", kContent, "", By<kCheckpoints, &Checkpoints::Content>},
      {"POST", kCheckpoint, "pin", By<kControl, &Control::Pin>},
      {"POST", kCheckpoint, "unpin", By<kControl, &Control::Unpin>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/logs", "", Own<&Api::GetLogs>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/explanation", "", Own<&Api::Explain>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/schedule", "", Own<&Api::GetSchedule>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/logged", "", Own<&Api::GetLogged>},
      {"GET", "/api/v1/sweeps/{sweep}/curves", "", Own<&Api::GetCurves>},
      {"GET", "/api/v1/sweeps/{sweep}/importance", "", Own<&Api::GetImportance>},
      {"GET", "/api/v1/metrics", "", By<&Api::metrics_, &MetricsPage::Get>},
      {"GET", "/api/v1/events", "", Own<&Api::StreamEvents>},
      {"GET", "/api/v1/executors", "", Own<&Api::ListExecutors>},
      {"POST", kExecutor, "drain", By<kControl, &Control::DrainExecutor>},
      {"POST", kExecutor, "resume", By<kControl, &Control::ResumeExecutor>},
      {"GET", "/api/v1/demand", "", Own<&Api::ListDemands>},
      {"GET", "/api/v1/pilots", "", By<&Api::pilots_, &Pilots::List>},
      {"POST", "/api/v1/pilots", "report", By<&Api::pilots_, &Pilots::Report>},
  };
  return routes;
}

Response Api::Handle(const Request& request) {
  const Path path = Path::Split(request.path);
  std::string allowed;
  for (const Route& route : Routes()) {
    if (route.verb != path.verb) continue;
    const auto target = Match(route.path, path.path);
    if (!target) continue;
    if (route.method == request.method) {
      const Status started = options_.backend->Started();
      if (!started.ok() && path.path.starts_with(kApi)) return Problem(started.error());
      return route.handle(*this, request, *target);
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    if (route.method == "GET") allowed += ", HEAD";
  }
  if (allowed.empty()) return Problem(404, "there is nothing at " + request.path);
  Response refusal = Problem(405, request.path + " takes " + allowed + ", not " + request.method);
  refusal.Set("Allow", allowed);
  return refusal;
}

// ---- Sweeps --------------------------------------------------------------------------------

// From the tables, as they are now.
Result<std::vector<WarmStart>> Api::WarmStartsOf(const SweepSpec& spec) {
  std::vector<WarmStart> starts;
  for (const SweepId from : spec.warm_start) {
    const auto earlier = options_.reader->Sweep(from);
    if (!earlier.ok()) {
      if (earlier.error().code != ErrorCode::kNotFound) return earlier.error();
      return Error{ErrorCode::kInvalid, "warm_start: there is no sweep " + ToString(from) +
                                            " here; `attune sweep list` shows those there are"};
    }
    auto results = options_.reader->Results(from);
    if (!results.ok()) return results.error();
    auto start = TakeFrom(spec, from, earlier->spec, std::move(results).value());
    if (!start.ok()) return start.error();
    starts.push_back(std::move(start).value());
  }
  return starts;
}

// Or finds the one that an earlier request with this key has made.
Result<SweepId> Api::MakeSweep(attune::CreateSweep command, const std::string& actor) {
  const std::string key = command.idempotency_key;
  if (!key.empty()) {
    const auto earlier = options_.reader->Requested(SweepId(0), key);
    if (!earlier.ok()) return earlier.error();
    if (*earlier) return *SweepOf((*earlier)->fact);
  }
  auto taken = WarmStartsOf(*command.spec);
  if (!taken.ok()) return taken.error();
  command.warm_start = std::move(taken).value();
  const auto events = options_.backend->Execute(std::move(command), actor);
  if (!events.ok()) return events.error();
  if (!events->empty()) return std::get<SweepCreated>(events->front().fact).sweep;
  std::optional<SweepId> id;  // made by a request beside this one
  options_.backend->Look([&](const Brain& brain) {
    const auto& by_key = brain.state().by_key;
    if (const auto made = by_key.find(key); made != by_key.end()) id = made->second;
  });
  if (id) return *id;
  return Error{ErrorCode::kConflict,
               "the sweep of another request with this Idempotency-Key has "
               "ended and was deleted meanwhile: try again"};
}

Response Api::CreateSweep(const Request& request, const Target&) {
  auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  sweepfile::Parsed parsed = Parse(request, options_);
  if (!parsed.spec) return Refuse(parsed.faults);
  const auto id = MakeSweep({*std::move(parsed.spec), request.body, *std::move(key), request.actor},
                            request.actor);
  if (!id.ok()) return RefuseBody(id.error(), request.body);
  Response created = answers_.Sweep(*id, 201);
  if (created.status == 201) created.Set("Location", std::string(kSweeps) + "/" + ToString(*id));
  return created;
}

Response Api::ValidateSweep(const Request& request, const Target&) {
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  const sweepfile::Parsed parsed = Parse(request, options_);
  if (!parsed.spec) return Refuse(parsed.faults);
  const auto taken = WarmStartsOf(*parsed.spec);
  if (!taken.ok()) return RefuseBody(taken.error(), request.body);
  Json words = Json::array();
  for (const WarmStart& start : *taken) words.push_back(start.text);
  return JsonAnswer({{"resolved", sweepfile::ToJson(*parsed.spec)},
                     {"warm_start", std::move(words)},
                     {"rungs", StepsToJson(answers_.RungsOf(*parsed.spec))}});
}

Response Api::ListSweeps(const Request& request, const Target&) {
  const auto size = IntegerQuery(request, "page_size", kSweepsPageDefault, 1, kSweepsPageMax);
  if (!size.ok()) return Problem(size.error());
  const auto before = ParsePageToken("sweeps", request);
  if (!before.ok()) return Problem(before.error());
  std::optional<SweepId> bound;
  if (*before) bound = SweepId(**before);
  auto sweeps = options_.reader->Sweeps(bound, static_cast<int>(*size) + 1);
  if (!sweeps.ok()) return Problem(sweeps.error());

  std::string next;
  if (std::ssize(*sweeps) > *size) {
    sweeps->pop_back();
    next = PageToken("sweeps", sweeps->back().id.value);
  }
  return JsonAnswer({{"sweeps", answers_.Sweeps(*sweeps)}, {"next_page_token", next}});
}

Response Api::GetSweep(const Request&, const Target& target) {
  return answers_.Sweep(target.sweep());
}

// ---- Trials --------------------------------------------------------------------------------

Response Api::ListTrials(const Request& request, const Target& target) {
  const auto size = IntegerQuery(request, "page_size", kTrialsPageMax, 1, kTrialsPageMax);
  if (!size.ok()) return Problem(size.error());
  const std::string of = ToString(target.sweep()) + "/trials";
  const auto first = ParsePageToken(of, request);
  if (!first.ok()) return Problem(first.error());
  auto trials = options_.reader->Trials(target.sweep(),
                                        TrialNumber(static_cast<uint32_t>(first->value_or(0))),
                                        static_cast<int>(*size) + 1);
  if (!trials.ok()) return Problem(trials.error());

  std::string next;
  if (std::ssize(*trials) > *size) {
    next = PageToken(of, trials->back().id.number.value);
    trials->pop_back();
  }
  return JsonAnswer({{"trials", answers_.Trials(*trials)}, {"next_page_token", next}});
}

Response Api::GetTrial(const Request&, const Target& target) {
  return answers_.Trial(target.trial);
}

Response Api::Explain(const Request& request, const Target& target) {
  // 0: the newest decision's.
  const auto step = IntegerQuery(request, "step", 0, 0, std::numeric_limits<int64_t>::max());
  if (!step.ok()) return Problem(step.error());
  const auto asked = *step > 0 ? std::optional(Step(*step)) : std::nullopt;
  const auto explanation = options_.reader->Explain(target.trial, asked);
  if (!explanation.ok()) return Problem(explanation.error());
  if (asked && !*explanation)
    return Problem(404, "nothing was decided on trial " + ToString(target.trial) + " at step " +
                            std::to_string(*step));
  const auto trial = options_.reader->Trial(target.trial);
  if (!trial.ok()) return Problem(trial.error());
  return JsonAnswer(ExplanationToJson(*trial, *explanation));
}

Response Api::GetSchedule(const Request&, const Target& target) {
  return schedules_.ScheduleOf(target);
}

Response Api::GetLogs(const Request& request, const Target& target) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto trial = options_.reader->Trial(target.trial);
  if (!trial.ok()) return Problem(trial.error());
  if (trial->attempts == 0)
    return Problem(404, "trial " + ToString(target.trial) + " has not run yet: it has no logs");
  const auto attempt = IntegerQuery(request, "attempt", trial->attempts, 1, trial->attempts);
  if (!attempt.ok()) return Problem(attempt.error());
  const auto rank = IntegerQuery(request, "rank", 0, 0, std::numeric_limits<int>::max());
  if (!rank.ok()) return Problem(rank.error());
  const auto offset = IntegerQuery(request, "offset", -65'536, -kMost, kMost);
  if (!offset.ok()) return Problem(offset.error());
  const auto limit = IntegerQuery(request, "limit", 65'536, 1, kLogSliceMaxBytes);
  if (!limit.ok()) return Problem(limit.error());

  auto slice =
      options_.backend->ReadLog({target.trial, static_cast<uint32_t>(*attempt)},
                                static_cast<int>(*rank), *offset, static_cast<uint32_t>(*limit));
  if (!slice.ok()) return Problem(slice.error());
  Response response{.content_type = "text/plain; charset=utf-8"};
  response.Set("X-Log-Offset", std::to_string(slice->offset))
      .Set("X-Log-Size", std::to_string(slice->file_bytes))
      .Set("Cache-Control", "no-store");
  response.body = std::move(slice->data);
  return response;
}

Response Api::GetCurves(const Request& request, const Target& target) {
  std::string metric = request.Query("metric").value_or("");
  if (metric.empty()) {
    const auto sweep = options_.reader->Sweep(target.sweep());
    if (!sweep.ok()) return Problem(sweep.error());
    metric = sweep->spec.objective().metric;
  }
  const auto curves = options_.reader->CurvesOf(target.sweep(), metric);
  if (!curves.ok()) return Problem(curves.error());
  Response response{.content_type = "application/json"};
  response.body = CurvesToText(metric, *curves);
  response.Set("Cache-Control", "no-store");
  return response;
}

Response Api::GetLogged(const Request& request, const Target& target) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto after = IntegerQuery(request, "after", 0, 0, kMost);
  if (!after.ok()) return Problem(after.error());
  const auto limit = IntegerQuery(request, "limit", kLoggedDefault, 1, kLoggedMax);
  if (!limit.ok()) return Problem(limit.error());
  if (const auto trial = options_.reader->Trial(target.trial); !trial.ok())
    return Problem(trial.error());
  const auto logged = options_.reader->LoggedBy(
      target.trial, EventSeq(static_cast<uint64_t>(*after)), static_cast<int>(*limit));
  if (!logged.ok()) return Problem(logged.error());
  Json list = Json::array();
  for (const LoggedRow& row : *logged) list.push_back(LoggedToJson(row));
  return JsonAnswer({{"logged", std::move(list)}});
}

Response Api::GetImportance(const Request& request, const Target& target) {
  const auto sweep = options_.reader->Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const SweepSpec& spec = sweep->spec;
  const std::string metric = request.Query("metric").value_or(spec.objective().metric);
  const auto objective = std::ranges::find(spec.objectives, metric, &Objective::metric);
  if (objective == spec.objectives.end()) {
    std::string metrics;
    for (const Objective& each : spec.objectives)
      metrics += (metrics.empty() ? "" : ", ") + each.metric;
    return Problem(400, "metric: sweep " + ToString(sweep->id) + " does not improve " + metric +
                            "; importance is known for " + metrics);
  }
  const auto results = options_.reader->Results(target.sweep());
  if (!results.ok()) return Problem(results.error());
  return JsonAnswer(ImportancesToJson(metric, ImportancesOf(spec.space, *objective, *results)));
}

// ---- The rest ------------------------------------------------------------------------------

Response Api::StreamEvents(const Request& request, const Target&) {
  std::optional<SweepId> sweep;
  if (const auto text = request.Query("sweep"); text && !text->empty()) {
    const auto id = ParseSweepId(*text);
    if (!id.ok()) return Problem(id.error());
    if (const auto known = options_.reader->Sweep(*id); !known.ok()) return Problem(known.error());
    sweep = *id;
  }
  // A browser that comes back says where it was; that goes before what its page first asked for.
  Request place = request;
  if (const auto last = request.Header("Last-Event-ID"); last && !last->empty()) {
    place.query.erase("after");
    place.query.emplace("after", *last);
  }
  const auto after = IntegerQuery(place, "after", -1, 0, std::numeric_limits<int64_t>::max());
  if (!after.ok()) return Problem(after.error());
  EventSeq begin(static_cast<uint64_t>(*after));
  if (*after < 0) {
    const auto last = options_.reader->LastSeq();
    if (!last.ok()) return Problem(last.error());
    begin = *last;
  }

  if (streams_->fetch_add(1) >= options_.streams) {
    streams_->fetch_sub(1);
    Response refusal = Problem(503, "there are already " + std::to_string(options_.streams) +
                                        " streams of events: close some pages");
    refusal.Set("Retry-After", "10");
    return refusal;
  }
  std::shared_ptr<void> taken(nullptr, [count = streams_](void*) { count->fetch_sub(1); });
  Response response{.content_type = "text/event-stream"};
  response.Set("Cache-Control", "no-store").Set("X-Accel-Buffering", "no");
  response.follow = Follow{.after = begin, .sweep = sweep, .place = std::move(taken)};
  return response;
}

Response Api::ListExecutors(const Request&, const Target&) {
  Json list = Json::array();
  for (const auto& executor : options_.backend->Executors())
    list.push_back(ExecutorToJson(executor));
  return JsonAnswer({{"executors", std::move(list)}});
}

Response Api::ListDemands(const Request&, const Target&) {
  std::vector<Demand> demands;
  options_.backend->Look([&](const Brain& brain) { demands = brain.Demands(); });
  Json list = Json::array();
  for (const Demand& demand : demands) list.push_back(DemandToJson(demand));
  return JsonAnswer({{"demand", std::move(list)}});
}

Response Api::Live(const Request&, const Target&) { return JsonAnswer({{"status", "live"}}); }

Response Api::Ready(const Request&, const Target&) {
  if (const Status ready = options_.backend->Ready(); !ready.ok())
    return Problem(Error{ErrorCode::kUnavailable, ready.error().message});
  return JsonAnswer({{"status", "ready"}});
}

Response Api::Version(const Request&, const Target&) {
  // So that a client can say how far its clock is off.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Time time{std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
  return JsonAnswer({{"version", options_.version}, {"api", "v1"}, {"time", FormatTime(time)}});
}

}  // namespace attune::server
