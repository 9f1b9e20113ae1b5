#pragma once

#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "server/http/answers/answers.h"
#include "server/http/answers/pages.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/checkpoints/checkpoints.h"
#include "server/http/routes/code/code.h"
#include "server/http/routes/fleet/executors.h"
#include "server/http/routes/fleet/pilots.h"
#include "server/http/routes/fleet/usage.h"
#include "server/http/routes/request/route.h"
#include "server/http/routes/service/events.h"
#include "server/http/routes/service/metrics.h"
#include "server/http/routes/service/service.h"
#include "server/http/routes/sweeps/replay.h"
#include "server/http/routes/sweeps/report.h"
#include "server/http/routes/sweeps/sweeps.h"
#include "server/http/routes/tokens/tokens.h"
#include "server/http/routes/trials/ask_tell.h"
#include "server/http/routes/trials/schedule.h"
#include "server/http/routes/trials/trials.h"
#include "server/http/transport/limits.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// Routes requests under /api/v1 (docs/reference/rest-api.md) and the health checks. Any thread.
class Api {
 public:
  struct Options {
    Backend* backend = nullptr;  // outlive the object
    Reader* reader = nullptr;
    const Algorithms* algorithms = nullptr;
    std::string version;
    std::optional<GpuHourPrice> gpu_hour_price;  // nullopt: costs have no money
    int streams = HttpLimits{}.streams;
    const NamedTokens* named_tokens = nullptr;  // outlive the object; null: none
    CodeStorage* code = nullptr;                // outlive the object; null: none
    const Pages* pages = nullptr;               // outlive the object; null: none
  };
  // REQUIRES: no null pointer except the last three.
  explicit Api(Options options);

  // Answers a request. REQUIRES: its access was checked.
  Response Handle(const Request& request);

 private:
  struct Route;

  static const std::vector<Route>& Routes();
  template <auto part, auto handler>
  static Response Call(Api& api, const Request& request, const Target& target);

  Options options_;
  Pilots pilots_;
  Answers answers_;
  Service service_;
  MetricsPage metrics_;
  Events events_;
  Sweeps sweeps_;
  Replays replays_;
  Reports reports_;
  Trials trials_;
  AskTell ask_tell_;
  Schedules schedules_;
  Checkpoints checkpoints_;
  Code code_;
  Executors executors_;
  Usage usage_;
  Tokens tokens_;
};

}  // namespace attune::server
