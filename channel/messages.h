#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/message_limits.h"
#include "base/result.h"

// The language of the worker channel (docs/reference/worker-channel.md), in both directions.
namespace attune::channel {

inline constexpr int kProtocol = 1;
inline constexpr int64_t kSilenceMsMax = int64_t{7} * 24 * 3600 * 1000;  // a week
using attune::kErrorTextBytesMax;                                        // the rest is left out
using attune::kIntegerMax;
using attune::kMetricNameBytesMax;
using attune::kMetricsMax;

// ---- executor -> rank

using Value = std::variant<double, int64_t, bool, std::string>;

struct NamedValue {
  std::string name;
  Value value;
};

struct Resume {
  int64_t step = 0;
  std::filesystem::path path;
  std::string digest;  // of the checkpoint's manifest; empty: not known
};

struct Start {
  std::string sweep;
  int64_t trial = 0;
  int attempt = 1;
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  // Of this host, where ranks of other hosts reach this rank; empty: all ranks are on this host.
  std::string address;
  std::string device = "cpu";
  std::vector<std::string> devices;  // all of the rank's, `device` first; empty: that one alone
  int cpus = 1;
  uint64_t seed = 0;
  std::vector<NamedValue> parameters;  // `config`, in the order of the sweep file
  // The metric whose value, rounded down, is the step of a report, of a checkpoint and in what
  // follows; empty: the program counts its steps.
  std::string time_attr;
  int64_t milestone = 0;  // 0: none
  int64_t max_step = 0;   // 0: none
  int64_t checkpoint_every = 0;
  std::string checkpoint_dir;  // empty: no checkpoints are kept
  std::optional<Resume> resume;
};

enum class Action { kContinue, kStop, kPause };

// The answer to the report at `step`.
struct Verdict {
  int64_t step = 0;
  channel::Action action = channel::Action::kContinue;
  int64_t milestone = 0;  // of the next decision; 0: none
};

// Rank 0 is to wait for a verdict at its next report, milestone or not.
struct Yield {};

// This process speaks for its rank from now on.
struct Claimed {};

// This process may not join, or not speak for its rank, and why.
struct Refused {
  std::string message;
};

// ---- both

// Where rank 0's store listens; goes on to the other ranks.
struct Rendezvous {
  std::string host;
  int port = 0;
};

// A type that this version does not know; ignored, so that the other end may be newer.
struct Unknown {};

// ---- rank -> executor

struct Report {
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> metrics;  // NaN and infinities allowed
  double seconds = 0;                                   // training time since the attempt began
  // Whether rank 0 waits for a verdict on it. A worker need not say so; an executor then knows it
  // from the milestone.
  std::optional<bool> waits;
};

// Points of curves between reports.
struct Logged {
  double step = 0;  // finite, at least 0; 2.25: a quarter of the way from step 2 to step 3
  std::vector<std::pair<std::string, double>> metrics;  // as a report's
};

struct CheckpointSaved {
  int64_t step = 0;
  std::string path;
  std::string digest;
  uint64_t bytes = 0;
};

struct Progress {
  int64_t step = 0;
};

// The rank is alive, and may say nothing more for `silence`.
struct Heartbeat {
  std::chrono::milliseconds silence{0};
};

// The rank has been waiting at `step` for these ranks for a while. Anything else that it says ends
// the wait.
struct Waiting {
  std::vector<int> ranks;
  int64_t step = 0;
};

// A program below a rank's process wants the start line. Its place is as its environment says: that
// of the rank, or the one that a launcher such as torchrun gave it.
struct Join {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// A program that has joined wants to speak for its rank.
struct Claim {};

// The program ends: its connections may close long before its process is gone. `message` says why,
// and counts if the exit status is not 0; empty: not known.
struct Leaving {
  std::string message;
};

// Why the rank is about to fail.
struct ErrorText {
  std::string message;
  bool lost_peer = false;  // the failure of another rank, as this one sees it
  bool disk_full = false;  // a disk or a quota of this host is full
};

struct Done {};

// What comes out of these two can be stored, sent on and shown as it is; everything else is refused
// here, where it can be blamed on who wrote it. The error names the field, its value and what it
// must be, and quotes the beginning of the line.
using FromExecutor = std::variant<Start, Rendezvous, Verdict, Yield, Claimed, Refused, Unknown>;
Result<FromExecutor> ParseFromExecutor(std::string_view line);

using FromRank = std::variant<Rendezvous, Report, Logged, CheckpointSaved, Progress, Heartbeat,
                              Waiting, Join, Claim, Leaving, ErrorText, Done, Unknown>;
Result<FromRank> ParseFromRank(std::string_view line);

// A line with its newline.
std::string ToLine(const Start& start);
std::string ToLine(const Verdict& verdict);
std::string ToLine(const Yield& yield);
std::string ToLine(const Claimed& claimed);
std::string ToLine(const Refused& refused);
std::string ToLine(const Rendezvous& rendezvous);
std::string ToLine(const Report& report);
std::string ToLine(const Logged& logged);
std::string ToLine(const CheckpointSaved& checkpoint);
std::string ToLine(const Progress& progress);
std::string ToLine(const Heartbeat& heartbeat);
std::string ToLine(const Waiting& waiting);
std::string ToLine(const Join& join);
std::string ToLine(const Claim& claim);
std::string ToLine(const Leaving& leaving);
std::string ToLine(const ErrorText& error);
std::string ToLine(const Done& done);

// The step of a report whose `time_attr` has this value, nullopt where it lacks that metric; `last`
// is the step of the one before, and the answer where a report within the same unit of time is none
// of its own.
Result<int64_t> StepOfTime(const std::string& time_attr, std::optional<double> value, int64_t last);

// Why an executor refuses metrics, for their names or their number; empty if it takes them.
std::string MetricsProblem(const std::vector<std::pair<std::string, double>>& metrics);

// The parameters as a JSON object in their order, with a newline.
std::string ToJson(const std::vector<NamedValue>& parameters);

}  // namespace attune::channel
