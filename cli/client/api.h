#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "cli/client/http_client.h"
#include "cli/json.h"
#include "rest/contract.h"

namespace attune::cli {

// A sweep file as the user wrote it.
struct SweepDocument {
  std::filesystem::path path;  // as given, for messages
  std::string text;

  // kNotFound without such a file, kInvalid if it is larger than a server accepts.
  static Result<SweepDocument> Read(const std::filesystem::path& path);

  bool json() const { return path.extension() == ".json"; }
  std::filesystem::path directory() const;  // absolute; the base of relative paths in the file
};

// The name of a trial: s1/17.
struct TrialName {
  std::string sweep;
  int64_t number = 0;

  // Parses "s1/17", or the two words "s1" and "17".
  static Result<TrialName> Parse(const std::vector<std::string>& words);
};

// The name of a checkpoint: s1/17/2-900 was saved by attempt 2 at step 900.
struct CheckpointName {
  TrialName trial;
  std::string name;  // 2-900

  static Result<CheckpointName> Parse(const std::string& text);
};

// A struct of the contract, and the JSON that the server sent, which `-o json` prints.
template <class T>
struct Parsed : T {
  Json document;
};
template <class T>
using Answer = Result<Parsed<T>>;

// nullopt for an empty text, so that a request omits the member.
inline std::optional<std::string> OmitIfEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// The server's REST API (docs/reference/rest-api.md, docs/openapi.yaml). Lists have all pages.
// Every call may also fail with the errors of HttpClient, and with kCorrupt or kInternal if the
// answer does not follow the contract.
class Api {
 public:
  explicit Api(Endpoint endpoint) : client_(std::move(endpoint)) {}

  Answer<rest::SweepDetail> Sweep(const std::string& id);
  Answer<rest::SweepList> Sweeps();   // newest first
  Result<std::string> NewestSweep();  // its id; kNotFound if there is none
  // Which trials to list; the server reads the texts.
  struct TrialQuery {
    std::string order_by = {};          // empty: by number
    std::string filter = {};            // empty: all trials
    std::optional<int64_t> limit = {};  // the most trials; nullopt: all
  };
  Answer<rest::TrialList> Trials(const std::string& sweep, const TrialQuery& query);
  Answer<rest::TrialList> Trials(const std::string& sweep) { return Trials(sweep, {}); }
  Answer<rest::CheckpointList> Checkpoints(const std::string& sweep);  // kept ones
  Answer<rest::TrialDetail> Trial(const TrialName& trial);

  // How much each parameter matters for a metric; nullopt: the first objective.
  // A metric that is not an objective needs a mode: min or max.
  Answer<rest::Importance> Importance(const std::string& sweep,
                                      const std::optional<std::string>& metric,
                                      const std::optional<std::string>& mode = std::nullopt);
  // What the sweep has cost.
  Answer<rest::SweepCost> Cost(const std::string& sweep);
  Answer<rest::Activity> Activity(const std::string& sweep, int limit);
  Result<std::string> Report(const std::string& sweep);  // the HTML file
  // Why the trial has its configuration, and its decision at `step` (nullopt: the newest).
  // kNotFound if there is no decision at the step.
  Answer<rest::Explanation> Explanation(const TrialName& trial, std::optional<int64_t> step);

  // The configurations that the trial's weights were trained with.
  Answer<rest::Schedule> Schedule(const TrialName& trial);
  // With which versions the newest attempt ran. kNotFound: the trial has not run.
  Answer<rest::AttemptEnvironment> Environment(const TrialName& trial);

  // The current sweep file, with every default and absolute paths.
  Answer<rest::ResolvedSweep> ResolvedSweep(const std::string& id);
  // A piece of a part of a snapshot of code (code/tree.h), from the offset on.
  Result<checkpoints::Piece> CodePiece(const std::string& digest, const std::string& part,
                                       uint64_t offset);

  // Faults of the document have the form `FILE:LINE:COLUMN: …` and code kInvalid.
  Answer<rest::SweepDetail> CreateSweep(const SweepDocument& document);

  // `action`: pause, resume, stop, kill, extend, edit, annotate, undelete.
  Answer<rest::SteeredSweep> SteerSweep(const std::string& id, const std::string& action,
                                        const Json& body = Json::object());
  Answer<rest::DeletedSweep> DeleteSweep(const std::string& id, int delay_seconds);
  // Replays the sweep with `changes`, a merge patch of its sweep file. `slots` nullopt: as
  // recorded.
  Answer<rest::Replay> Replay(const std::string& id, const Json& changes, std::optional<int> slots);
  // `action`: kill, retry, continue, annotate.
  Answer<rest::SteeredTrial> SteerTrial(const TrialName& trial, const std::string& action,
                                        const Json& body = Json::object());
  Answer<rest::ExecutorList> Executors();
  Answer<rest::OccupancyList> Occupancies();
  // The first `limit` gangs that wait.
  Answer<rest::Queue> Queue(int limit);
  Answer<rest::DemandList> Demand();
  Answer<rest::FleetList> Pilots();
  Status ReportPilots(const rest::FleetReport& report);
  // `action`: drain, resume.
  Answer<rest::SteeredExecutor> SteerExecutor(const std::string& name, const std::string& action,
                                              const Json& body);
  Answer<rest::SteeredTrial> PinCheckpoint(const CheckpointName& checkpoint, bool pinned);

  Answer<rest::SteeredCheckpoint> DropCheckpoint(const CheckpointName& checkpoint);
  // A part of a checkpoint's file from `offset` on. The server limits its size.
  Result<checkpoints::Piece> CheckpointContent(const CheckpointName& checkpoint,
                                               const std::string& file, uint64_t offset);

  Answer<rest::TrialDetail> EnqueueTrial(const std::string& sweep, const rest::NewTrial& trial);

  Answer<rest::Offer> AskTrial(const std::string& sweep, const rest::Ask& ask);
  // Every member of the verdict is absent if the server only recorded the end of the trial.
  Answer<rest::Verdict> TellTrial(const TrialName& trial, const rest::Tell& tell);

  struct LogSlice {
    std::string data;
    int64_t offset = 0;
    int64_t file_bytes = 0;
  };
  // `attempt` absent: the newest. A negative offset counts from the end.
  Result<LogSlice> Log(const TrialName& trial, int rank, std::optional<int> attempt,
                       int64_t offset);

  Answer<rest::Version> Version();

  const Endpoint& endpoint() const { return client_.endpoint(); }

 private:
  HttpClient client_;
};

}  // namespace attune::cli
