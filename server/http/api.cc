#include "server/http/api.h"

#include <limits>
#include <utility>

#include "core/check.h"
#include "server/http/event_stream.h"
#include "server/http/problem.h"
#include "server/http/query.h"
#include "server/http/render.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {

struct Api::Target {
  TrialId trial;
  SweepId sweep() const { return trial.sweep; }
};

// A path of the API: words, and the places of ids ("{sweep}", "{trial}"); `verb` follows the last
// colon.
struct Api::Route {
  std::string_view method;
  std::string_view path;
  std::string_view verb;
  Response (Api::*handle)(const Request&, const Target&);
};

namespace {

constexpr std::string_view kBase = "/api/v1";

Response JsonAnswer(const Json& json, int status = 200) {
  Response response{.status = status, .content_type = "application/json"};
  response.body = Dump(json);
  response.Set("Cache-Control", "no-store");
  return response;
}

std::string_view NextSegment(std::string_view& rest) {
  const size_t end = std::min(rest.find('/'), rest.size());
  const std::string_view segment = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return segment;
}

// The ids in a path that has a route's form; nullopt when it has another.
std::optional<TrialId> Match(std::string_view pattern, std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  TrialId ids;
  std::string sweep;
  while (!pattern.empty() || !path.empty()) {
    const std::string_view expected = NextSegment(pattern);
    const std::string_view segment = NextSegment(path);
    if (expected == "{sweep}") {
      const auto id = ParseSweepId(segment);
      if (!id.ok()) return std::nullopt;
      sweep = segment;
      ids.sweep = *id;
    } else if (expected == "{trial}") {
      const auto id = ParseTrialId(sweep + "/" + std::string(segment));
      if (!id.ok()) return std::nullopt;
      ids = *id;
    } else if (expected.empty() || expected != segment) {
      return std::nullopt;
    }
  }
  return ids;
}

sweepfile::Parsed Parse(const Request& request, const Api::Options& options) {
  sweepfile::ParseOptions parse{.algorithms = options.algorithms,
                                .program_exists = options.program_exists};
  if (const auto file = request.Query("file"); file && !file->empty()) parse.file = *file;
  parse.directory = request.Query("directory").value_or("");
  return sweepfile::ParseSweep(request.body, parse);
}

// 400 for a text that is no document at all, 422 for one that says something wrong.
Response Refuse(const sweepfile::Parsed& parsed) {
  ATTUNE_CHECK(!parsed.faults.empty());
  const bool whole = parsed.faults.size() == 1 && parsed.faults.front().pointer.empty();
  const std::string detail = parsed.faults.size() == 1
                                 ? sweepfile::FormatFault("line", parsed.faults.front())
                                 : std::to_string(parsed.faults.size()) + " things are wrong";
  return Problem(whole ? 400 : 422, detail, parsed.faults);
}

}  // namespace

Api::Api(Options options)
    : options_(std::move(options)), streams_(std::make_shared<std::atomic<int>>(0)) {
  ATTUNE_CHECK(options_.backend != nullptr && options_.reader != nullptr &&
               options_.algorithms != nullptr);
}

const std::vector<Api::Route>& Api::Routes() {
  static const std::vector<Route> routes = {
      {"GET", "/livez", "", &Api::Live},
      {"GET", "/readyz", "", &Api::Ready},
      {"GET", "/version", "", &Api::Version},
      {"GET", "/api/v1/sweeps", "", &Api::ListSweeps},
      {"POST", "/api/v1/sweeps", "", &Api::CreateSweep},
      {"POST", "/api/v1/sweeps", "validate", &Api::ValidateSweep},
      {"GET", "/api/v1/sweeps/{sweep}", "", &Api::GetSweep},
      {"POST", "/api/v1/sweeps/{sweep}", "stop", &Api::StopSweep},
      {"POST", "/api/v1/sweeps/{sweep}", "kill", &Api::KillSweep},
      {"GET", "/api/v1/sweeps/{sweep}/trials", "", &Api::ListTrials},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}", "", &Api::GetTrial},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/logs", "", &Api::GetLogs},
      {"GET", "/api/v1/sweeps/{sweep}/curves", "", &Api::GetCurves},
      {"GET", "/api/v1/events", "", &Api::StreamEvents},
      {"GET", "/api/v1/executors", "", &Api::ListExecutors},
  };
  return routes;
}

Response Api::Handle(const Request& request) {
  std::string_view path = request.path;
  std::string_view verb;
  if (const size_t colon = path.rfind(':');
      colon != std::string_view::npos && path.find('/', colon) == std::string_view::npos) {
    verb = path.substr(colon + 1);
    path = path.substr(0, colon);
  }
  std::string allowed;
  for (const Route& route : Routes()) {
    if (route.verb != verb) continue;
    const auto ids = Match(route.path, path);
    if (!ids) continue;
    if (route.method == request.method) return (this->*route.handle)(request, Target{*ids});
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    if (route.method == "GET") allowed += ", HEAD";
  }
  if (allowed.empty()) return Problem(404, "there is nothing at " + request.path);
  Response refusal = Problem(405, request.path + " takes " + allowed + ", not " + request.method);
  refusal.Set("Allow", allowed);
  return refusal;
}

// ---- Sweeps --------------------------------------------------------------------------------

Response Api::CreateSweep(const Request& request, const Target&) {
  const std::string key = request.Header("Idempotency-Key").value_or("");
  if (key.size() > kIdempotencyKeyMaxBytes)
    return Problem(
        400, "Idempotency-Key: longer than " + std::to_string(kIdempotencyKeyMaxBytes) + " bytes");
  sweepfile::Parsed parsed = Parse(request, options_);
  if (!parsed.spec) return Refuse(parsed);
  const auto id = options_.backend->CreateSweep(
      {.spec = *std::move(parsed.spec), .source = request.body, .idempotency_key = key});
  // The file is well-formed, but an algorithm cannot serve it.
  if (!id.ok() && id.error().code == ErrorCode::kInvalid) return Problem(422, id.error().message);
  if (!id.ok()) return Problem(id.error());
  Response created = SweepAnswer(*id, 201);
  if (created.status == 201)
    created.Set("Location", std::string(kBase) + "/sweeps/" + ToString(*id));
  return created;
}

Response Api::ValidateSweep(const Request& request, const Target&) {
  const sweepfile::Parsed parsed = Parse(request, options_);
  if (!parsed.spec) return Refuse(parsed);
  if (const auto made = options_.algorithms->MakeSearcher(*parsed.spec); !made.ok())
    return Problem(422, made.error().message);
  if (const auto made = options_.algorithms->MakeScheduler(*parsed.spec); !made.ok())
    return Problem(422, made.error().message);
  return JsonAnswer({{"resolved", sweepfile::ToJson(*parsed.spec)},
                     {"rungs", StepsToJson(RungsOf(*parsed.spec))}});
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
  Json list = Json::array();
  for (const SweepRow& sweep : *sweeps)
    list.push_back(SweepToJson(sweep, RungsOf(sweep.spec), options_.backend->Waiting(sweep.id)));
  return JsonAnswer({{"sweeps", std::move(list)}, {"next_page_token", next}});
}

Response Api::GetSweep(const Request&, const Target& target) {
  return SweepAnswer(target.sweep(), 200);
}

Response Api::StopSweep(const Request&, const Target& target) {
  if (Status done = options_.backend->StopSweep(target.sweep()); !done.ok())
    return Problem(done.error());
  return SweepAnswer(target.sweep(), 202);
}

Response Api::KillSweep(const Request&, const Target& target) {
  if (Status done = options_.backend->KillSweep(target.sweep()); !done.ok())
    return Problem(done.error());
  return SweepAnswer(target.sweep(), 202);
}

std::vector<Step> Api::RungsOf(const SweepSpec& spec) const {
  const auto scheduler = options_.algorithms->MakeScheduler(spec);
  if (!scheduler.ok()) return {};  // of a release that knew another scheduler
  return (*scheduler)->Rungs();
}

Response Api::SweepAnswer(SweepId id, int status) {
  const auto sweep = options_.reader->Sweep(id);
  if (!sweep.ok()) return Problem(sweep.error());
  auto file = options_.reader->SweepFile(id);
  if (!file.ok()) return Problem(file.error());
  Json json = SweepToJson(*sweep, RungsOf(sweep->spec), options_.backend->Waiting(id));
  json["parameters"] = ParametersToJson(sweep->spec.space);
  json["file"] = std::move(file).value();
  return JsonAnswer(json, status);
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
  Json list = Json::array();
  for (const TrialRow& trial : *trials) list.push_back(TrialToJson(trial));
  return JsonAnswer({{"trials", std::move(list)}, {"next_page_token", next}});
}

Response Api::GetTrial(const Request&, const Target& target) {
  const auto detail = options_.reader->Detail(target.trial);
  if (!detail.ok()) return Problem(detail.error());
  return JsonAnswer(DetailToJson(*detail));
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
    metric = sweep->spec.objective.metric;
  }
  const auto curves = options_.reader->CurvesOf(target.sweep(), metric);
  if (!curves.ok()) return Problem(curves.error());
  Response response{.content_type = "application/json"};
  response.body = CurvesToText(metric, *curves);
  response.Set("Cache-Control", "no-store");
  return response;
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

  if (streams_->fetch_add(1) >= kMaxStreams) {
    streams_->fetch_sub(1);
    Response refusal = Problem(503, "there are already " + std::to_string(kMaxStreams) +
                                        " streams of events: close some pages");
    refusal.Set("Retry-After", "10");
    return refusal;
  }
  std::shared_ptr<void> place_taken(nullptr, [count = streams_](void*) { count->fetch_sub(1); });
  Response response{.content_type = "text/event-stream"};
  response.Set("Cache-Control", "no-store").Set("X-Accel-Buffering", "no");
  response.stream =
      [stream = std::make_shared<EventStream>(*options_.backend, *options_.reader, begin, sweep),
       place_taken](Sink& sink) { return stream->Turn(sink); };
  return response;
}

Response Api::ListExecutors(const Request&, const Target&) {
  Json list = Json::array();
  for (const auto& executor : options_.backend->Executors())
    list.push_back(ExecutorToJson(executor));
  return JsonAnswer({{"executors", std::move(list)}});
}

Response Api::Live(const Request&, const Target&) { return JsonAnswer({{"status", "live"}}); }

Response Api::Ready(const Request&, const Target&) {
  if (const Status ready = options_.backend->Ready(); !ready.ok())
    return Problem(503, ready.error().message);
  return JsonAnswer({{"status", "ready"}});
}

Response Api::Version(const Request&, const Target&) {
  return JsonAnswer({{"version", options_.version}, {"api", "v1"}});
}

}  // namespace attune::server
