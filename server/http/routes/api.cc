#include "server/http/routes/api.h"

#include <string_view>
#include <utility>

#include "base/result.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {

// A route of the API. `path` consists of words and placeholders for ids; `verb` follows the last
// colon. A heavy request may take seconds of CPU, so it runs on one of few threads.
struct Api::Route {
  // Whether every answer needs the tables for people, which are rebuilt after an update.
  enum class Tables { kNeeded, kNotNeeded };
  enum class Cost { kLight, kHeavy };

  std::string_view method;
  std::string_view path;
  std::string_view verb;
  Response (*handle)(Api&, const Request&, const Target&);
  Tables tables = Tables::kNeeded;
  Cost cost = Cost::kLight;
};

namespace {

constexpr const char* kApi = "/api/v1/";
constexpr const char* kSweeps = "/api/v1/sweeps";
constexpr const char* kSweep = "/api/v1/sweeps/{sweep}";
constexpr const char* kTrials = "/api/v1/sweeps/{sweep}/trials";
constexpr const char* kTrial = "/api/v1/sweeps/{sweep}/trials/{trial}";
constexpr const char* kCheckpoint =
    "/api/v1/sweeps/{sweep}/trials/{trial}/checkpoints/{checkpoint}";
constexpr const char* kCode = "/api/v1/code/{code}";
constexpr const char* kTokens = "/api/v1/tokens";
constexpr const char* kExecutor = "/api/v1/executors/{executor}";

}  // namespace

Api::Api(Options options)
    : options_(std::move(options)),
      answers_(*options_.backend, *options_.reader, *options_.algorithms,
               [this](SweepId sweep) { return pilots_.WhyNoPilots(sweep); }),
      service_(*options_.backend, options_.version),
      metrics_(*options_.backend, *options_.reader, options_.version),
      events_(*options_.reader, options_.streams),
      sweeps_(*options_.backend, *options_.reader, answers_, *options_.algorithms, options_.code,
              options_.gpu_hour_price),
      replays_(*options_.reader, *options_.algorithms),
      reports_(*options_.reader, options_.pages, options_.version,
               [this](const Request& request) { return Handle(request); }),
      trials_(*options_.backend, *options_.reader, answers_, options_.code),
      ask_tell_(*options_.backend, *options_.reader),
      schedules_(*options_.reader),
      checkpoints_(*options_.backend, *options_.reader, answers_),
      code_(options_.code),
      executors_(*options_.backend),
      usage_(*options_.backend, *options_.reader),
      tokens_(options_.named_tokens) {}

template <auto part, auto handler>
Response Api::Call(Api& api, const Request& request, const Target& target) {
  return ((api.*part).*handler)(request, target);
}

const std::vector<Api::Route>& Api::Routes() {
  static const std::vector<Route> routes = {
      {"GET", "/livez", "", Call<&Api::service_, &Service::Liveness>},
      {"GET", "/readyz", "", Call<&Api::service_, &Service::Readiness>},
      {"GET", "/version", "", Call<&Api::service_, &Service::Version>},
      {"GET", "/api/v1/session", "", Call<&Api::service_, &Service::Session>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/openapi.json", "", Call<&Api::service_, &Service::Contract>,
       Route::Tables::kNotNeeded},
      {"GET", kTokens, "", Call<&Api::tokens_, &Tokens::List>, Route::Tables::kNotNeeded},
      {"POST", kTokens, "", Call<&Api::tokens_, &Tokens::Create>, Route::Tables::kNotNeeded},
      {"DELETE", "/api/v1/tokens/{token}", "", Call<&Api::tokens_, &Tokens::Revoke>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/metrics", "", Call<&Api::metrics_, &MetricsPage::Get>},
      {"GET", "/api/v1/events", "", Call<&Api::events_, &Events::Stream>},

      {"GET", kSweeps, "", Call<&Api::sweeps_, &Sweeps::List>},
      {"POST", kSweeps, "", Call<&Api::sweeps_, &Sweeps::Create>},
      {"POST", kSweeps, "validate", Call<&Api::sweeps_, &Sweeps::Validate>},
      {"POST", kSweeps, "simulate", Call<&Api::replays_, &Replays::SimulateSweep>,
       Route::Tables::kNotNeeded, Route::Cost::kHeavy},
      {"GET", kSweep, "", Call<&Api::sweeps_, &Sweeps::Get>},
      {"GET", "/api/v1/sweeps/{sweep}/resolved", "", Call<&Api::sweeps_, &Sweeps::Resolved>},
      {"GET", "/api/v1/sweeps/{sweep}/curves", "", Call<&Api::sweeps_, &Sweeps::Curves>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"GET", "/api/v1/sweeps/{sweep}/importance", "", Call<&Api::sweeps_, &Sweeps::Importance>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"GET", "/api/v1/sweeps/{sweep}/cost", "", Call<&Api::sweeps_, &Sweeps::Cost>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"GET", "/api/v1/sweeps/{sweep}/failures", "", Call<&Api::sweeps_, &Sweeps::Failures>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"GET", "/api/v1/sweeps/{sweep}/lineage", "", Call<&Api::sweeps_, &Sweeps::Lineage>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"GET", "/api/v1/sweeps/{sweep}/activity", "", Call<&Api::sweeps_, &Sweeps::Activity>},
      {"GET", "/api/v1/sweeps/{sweep}/report", "", Call<&Api::reports_, &Reports::Get>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"POST", kSweep, "replay", Call<&Api::replays_, &Replays::ReplaySweep>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"PATCH", kSweep, "", Call<&Api::sweeps_, &Sweeps::Edit>},
      {"POST", kSweep, "edit", Call<&Api::sweeps_, &Sweeps::Edit>},
      {"POST", kSweep, "annotate", Call<&Api::sweeps_, &Sweeps::Annotate>},
      {"POST", kSweep, "extend", Call<&Api::sweeps_, &Sweeps::Extend>},
      {"POST", kSweep, "pause", Call<&Api::sweeps_, &Sweeps::Pause>},
      {"POST", kSweep, "resume", Call<&Api::sweeps_, &Sweeps::Resume>},
      {"POST", kSweep, "stop", Call<&Api::sweeps_, &Sweeps::Stop>},
      {"POST", kSweep, "kill", Call<&Api::sweeps_, &Sweeps::Kill>},
      {"DELETE", kSweep, "", Call<&Api::sweeps_, &Sweeps::Delete>},
      {"POST", kSweep, "undelete", Call<&Api::sweeps_, &Sweeps::Undelete>},

      {"GET", kTrials, "", Call<&Api::trials_, &Trials::List>},
      {"GET", kTrial, "", Call<&Api::trials_, &Trials::Get>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/explanation", "",
       Call<&Api::trials_, &Trials::Explain>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/environment", "",
       Call<&Api::trials_, &Trials::Environment>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/logged", "",
       Call<&Api::trials_, &Trials::Logged>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/logs", "", Call<&Api::trials_, &Trials::Logs>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/schedule", "",
       Call<&Api::schedules_, &Schedules::Get>, Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"POST", kTrials, "", Call<&Api::trials_, &Trials::Enqueue>},
      {"POST", kTrial, "kill", Call<&Api::trials_, &Trials::Kill>},
      {"POST", kTrial, "retry", Call<&Api::trials_, &Trials::Retry>},
      {"POST", kTrial, "continue", Call<&Api::trials_, &Trials::Continue>},
      {"POST", kTrial, "annotate", Call<&Api::trials_, &Trials::Annotate>},
      {"POST", kTrials, "ask", Call<&Api::ask_tell_, &AskTell::Ask>, Route::Tables::kNotNeeded},
      {"POST", kTrial, "tell", Call<&Api::ask_tell_, &AskTell::Tell>, Route::Tables::kNotNeeded},

      {"GET", "/api/v1/sweeps/{sweep}/checkpoints", "",
       Call<&Api::checkpoints_, &Checkpoints::List>},
      {"GET", kCheckpoint, "", Call<&Api::checkpoints_, &Checkpoints::Get>},
      {"GET", "/api/v1/sweeps/{sweep}/trials/{trial}/checkpoints/{checkpoint}/content", "",
       Call<&Api::checkpoints_, &Checkpoints::Content>},
      {"POST", kCheckpoint, "pin", Call<&Api::checkpoints_, &Checkpoints::Pin>},
      {"POST", kCheckpoint, "unpin", Call<&Api::checkpoints_, &Checkpoints::Unpin>},
      {"DELETE", kCheckpoint, "", Call<&Api::checkpoints_, &Checkpoints::Drop>},

      {"GET", kCode, "", Call<&Api::code_, &Code::Get>, Route::Tables::kNotNeeded},
      {"GET", "/api/v1/code/{code}/manifest", "", Call<&Api::code_, &Code::GetManifest>,
       Route::Tables::kNotNeeded},
      {"POST", "/api/v1/code/{code}/manifest", "", Call<&Api::code_, &Code::SendManifest>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/code/{code}/pack", "", Call<&Api::code_, &Code::GetPack>,
       Route::Tables::kNotNeeded},
      {"POST", "/api/v1/code/{code}/pack", "", Call<&Api::code_, &Code::SendPack>,
       Route::Tables::kNotNeeded},

      {"GET", "/api/v1/executors", "", Call<&Api::executors_, &Executors::List>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/demand", "", Call<&Api::executors_, &Executors::Demands>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/queue", "", Call<&Api::executors_, &Executors::Queue>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/occupancy", "", Call<&Api::usage_, &Usage::Occupancies>,
       Route::Tables::kNeeded, Route::Cost::kHeavy},
      {"GET", "/api/v1/timeline", "", Call<&Api::usage_, &Usage::Timeline>, Route::Tables::kNeeded,
       Route::Cost::kHeavy},
      {"POST", kExecutor, "drain", Call<&Api::executors_, &Executors::Drain>,
       Route::Tables::kNotNeeded},
      {"POST", kExecutor, "resume", Call<&Api::executors_, &Executors::Resume>,
       Route::Tables::kNotNeeded},
      {"GET", "/api/v1/pilots", "", Call<&Api::pilots_, &Pilots::List>, Route::Tables::kNotNeeded},
      {"POST", "/api/v1/pilots", "report", Call<&Api::pilots_, &Pilots::Report>,
       Route::Tables::kNotNeeded},
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
      if (path.path.starts_with(kApi)) {
        const std::string verb = route.verb.empty() ? "" : ":" + std::string(route.verb);
        const Status known = CheckQuery(request, std::string(route.path) + verb);
        if (!known.ok()) return Problem(known.error());
        const Status there =
            route.tables == Route::Tables::kNeeded ? options_.reader->Ready() : Status();
        if (!there.ok()) return Problem(there.error());
      }
      if (route.cost == Route::Cost::kHeavy && !request.heavy) return {.heavy = true};
      return route.handle(*this, request, *target);
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    if (route.method == "GET") allowed += ", HEAD";
  }
  if (allowed.empty())
    return Problem(rest::ProblemType::kNotFound, "there is nothing at " + request.path);
  Response refusal = Problem(rest::ProblemType::kMethodNotAllowed,
                             request.path + " takes " + allowed + ", not " + request.method);
  refusal.Set("Allow", allowed);
  return refusal;
}

}  // namespace attune::server
