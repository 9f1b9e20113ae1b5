#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "server/http/answers.h"
#include "server/http/ask_tell.h"
#include "server/http/backend.h"
#include "server/http/checkpoints/checkpoints.h"
#include "server/http/control.h"
#include "server/http/fleet/metrics.h"
#include "server/http/fleet/pilots.h"
#include "server/http/message.h"
#include "server/http/replay.h"
#include "server/http/route.h"
#include "server/http/schedule.h"
#include "server/http/wire/limits.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kTrialsPageMax = 1'000;
inline constexpr int kLoggedDefault = 1'000;
inline constexpr int kLoggedMax = 10'000;
inline constexpr int kSweepsPageMax = 1'000;
inline constexpr int kSweepsPageDefault = 100;
inline constexpr int64_t kLogSliceMaxBytes = 1 << 20;

// What is under /api/v1 (docs/rest-api.md), and the health checks: reading, creating sweeps, and
// the way to all the rest. Any thread.
class Api {
 public:
  struct Options {
    Backend* backend = nullptr;  // outlive the object
    Reader* reader = nullptr;
    const Algorithms* algorithms = nullptr;
    std::function<bool(const std::string& path)> program_exists;  // empty: not asked
    std::string version;
    int streams = HttpLimits{}.streams;
  };
  // REQUIRES: no null pointer.
  explicit Api(Options options);

  // Access is checked before.
  Response Handle(const Request& request);

 private:
  struct Route;

  static const std::vector<Route>& Routes();
  template <auto handler>
  static Response Own(Api& api, const Request& request, const Target& target);
  template <auto part, auto handler>
  static Response By(Api& api, const Request& request, const Target& target);

  Result<std::vector<WarmStart>> WarmStartsOf(const SweepSpec& spec);
  Result<SweepId> MakeSweep(attune::CreateSweep command, const std::string& actor);
  Response CreateSweep(const Request& request, const Target& target);
  Response ValidateSweep(const Request& request, const Target& target);
  Response ListSweeps(const Request& request, const Target& target);
  Response GetSweep(const Request& request, const Target& target);
  Response ListTrials(const Request& request, const Target& target);
  Response GetTrial(const Request& request, const Target& target);
  Response Explain(const Request& request, const Target& target);
  Response GetSchedule(const Request& request, const Target& target);
  Response GetLogs(const Request& request, const Target& target);
  Response GetCurves(const Request& request, const Target& target);
  Response GetLogged(const Request& request, const Target& target);
  Response GetImportance(const Request& request, const Target& target);
  Response StreamEvents(const Request& request, const Target& target);
  Response ListDemands(const Request& request, const Target& target);
  Response ListExecutors(const Request& request, const Target& target);
  Response Live(const Request& request, const Target& target);
  Response Ready(const Request& request, const Target& target);
  Response Version(const Request& request, const Target& target);

  Options options_;
  Pilots pilots_;
  Answers answers_;
  Control control_;
  AskTell ask_tell_;
  Replays replays_;
  Schedules schedules_;
  MetricsPage metrics_;
  Checkpoints checkpoints_;
  std::shared_ptr<std::atomic<int>> streams_;
};

}  // namespace attune::server
