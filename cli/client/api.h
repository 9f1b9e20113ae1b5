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

namespace attune::cli {

// A sweep file as a person wrote it.
struct SweepDocument {
  std::filesystem::path path;  // as given: for messages
  std::string text;

  // kNotFound when there is no such file, kInvalid when it is larger than a server accepts.
  static Result<SweepDocument> Read(const std::filesystem::path& path);

  bool json() const { return path.extension() == ".json"; }
  std::filesystem::path directory() const;  // absolute: what relative paths in it mean
};

// A trial as people name it: s1/17.
struct TrialName {
  std::string sweep;
  int64_t number = 0;

  // Of "s1/17", or of "s1" and "17".
  static Result<TrialName> Parse(const std::vector<std::string>& words);
};

// A trial's checkpoint as people name it: s1/17/2-900, saved by attempt 2 at step 900.
struct CheckpointName {
  TrialName trial;
  std::string name;  // 2-900

  static Result<CheckpointName> Parse(const std::string& text);
};

// The server's REST interface (docs/rest-api.md). Answers are the server's JSON.
class Api {
 public:
  explicit Api(Endpoint endpoint) : client_(std::move(endpoint)) {}

  Result<Json> Sweep(const std::string& id);
  Result<Json> Sweeps();                               // all, newest first, as an array
  Result<std::string> NewestSweep();                   // its id; kNotFound when there is none
  Result<Json> Trials(const std::string& sweep);       // all, by number, as an array
  Result<Json> Checkpoints(const std::string& sweep);  // kept ones, by trial and step, as an array
  Result<Json> Trial(const TrialName& trial);

  // How much each parameter decides of a metric; nullopt: of the sweep's first.
  Result<Json> Importance(const std::string& sweep, const std::optional<std::string>& metric);
  // Why it has its configuration, and the newest decision, or the one at a step, with the trials
  // that it was compared with. kNotFound: there is none at the step.
  Result<Json> Explanation(const TrialName& trial, std::optional<int64_t> step);

  // What its weights were trained with, step by step, and the sweep file that does so again.
  Result<Json> Schedule(const TrialName& trial);

  // Faults of the document come as `FILE:LINE:COLUMN: …`, with kInvalid.
  Result<Json> CreateSweep(const SweepDocument& document);

  // `verb`: pause, resume, stop, kill, extend, edit. The sweep, with `effect`.
  Result<Json> SteerSweep(const std::string& id, const std::string& verb,
                          const Json& body = Json::object());
  Result<Json> DeleteSweep(const std::string& id);  // with `effect`
  // What it had been with these changes of its sweep file; slots absent: as many as it had.
  Result<Json> Replay(const std::string& id, const Json& changes, std::optional<int> slots);
  // `verb`: kill, retry, continue. The trial, with `effect`.
  Result<Json> SteerTrial(const TrialName& trial, const std::string& verb,
                          const Json& body = Json::object());
  Result<Json> Executors();  // as an array
  Result<Json> Demand();     // gangs that find no room, as an array
  Result<Json> Pilots();     // what keepers have said last, by fleet, as an array
  Status ReportPilots(const Json& report);
  // `verb`: drain, resume. The executor, with `effect`.
  Result<Json> SteerExecutor(const std::string& name, const std::string& verb, const Json& body);
  Result<Json> PinCheckpoint(const CheckpointName& checkpoint, bool pinned);  // the trial

  Result<Json> DropCheckpoint(const CheckpointName& checkpoint);
  // Part of one of its files, as much as the server gives at once.
  Result<checkpoints::Piece> CheckpointContent(const CheckpointName& checkpoint,
                                               const std::string& file, uint64_t offset);

  Result<Json> EnqueueTrial(const std::string& sweep, const Json& config);

  // The next trial of a sweep without a program; its `trial` is null when there is none.
  // lease: such as 10m; empty: as the server likes.
  Result<Json> AskTrial(const std::string& sweep, const std::string& lease);
  Result<Json> TellTrial(const TrialName& trial, const Json& body);  // a verdict; {} at the end

  struct LogSlice {
    std::string data;
    int64_t offset = 0;
    int64_t file_bytes = 0;
  };
  // `attempt` absent: the newest. A negative offset counts from the end.
  Result<LogSlice> Log(const TrialName& trial, int rank, std::optional<int> attempt,
                       int64_t offset);

  Result<Json> Version();

  const Endpoint& endpoint() const { return client_.endpoint(); }

 private:
  Result<Json> GetJson(const Request& request);
  Result<Json> PostJson(const Request& request, const Json& body);
  Result<Json> AllPages(const std::string& path, const std::string& items);

  HttpClient client_;
};

}  // namespace attune::cli
