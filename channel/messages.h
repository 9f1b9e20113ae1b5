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

// The messages of the worker channel (docs/reference/worker-channel.md), in both directions.
namespace attune::channel {

inline constexpr int kProtocol = 1;
inline constexpr int64_t kSilenceMsMax = int64_t{7} * 24 * 3600 * 1000;  // a week
using attune::kErrorTextBytesMax;                                        // longer texts are cut
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
  std::string digest;  // digest of the checkpoint's manifest; empty: not known
};

struct Start {
  std::string sweep;
  int64_t trial = 0;
  int attempt = 1;
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  // The address of this host for ranks on other hosts. Empty: all ranks are on this host.
  std::string address;
  std::string device = "cpu";
  std::vector<std::string>
      devices;  // all devices of the rank, `device` first; empty: only `device`
  int cpus = 1;
  uint64_t seed = 0;
  std::vector<NamedValue> parameters;  // `config`, in the order of the sweep file
  // The metric whose value, rounded down, is the step of reports, checkpoints and milestones.
  // Empty: the program counts its steps.
  std::string time_attr;
  int64_t milestone = 0;  // 0: none
  int64_t max_step = 0;   // 0: none
  int64_t checkpoint_every = 0;
  std::string checkpoint_dir;  // empty: the sweep keeps no checkpoints
  std::optional<Resume> resume;
};

enum class Action { kContinue, kStop, kPause };

// The answer to the report at `step`.
struct Verdict {
  int64_t step = 0;
  channel::Action action = channel::Action::kContinue;
  int64_t milestone = 0;  // step of the next decision; 0: none
};

// Rank 0 must wait for a verdict at its next report, even if it is not a milestone.
struct Yield {};

// From now on, this process sends the messages of its rank.
struct Claimed {};

// This process may not join, or may not send the messages of its rank. `message` says why.
struct Refused {
  std::string message;
};

// ---- both

// The address of rank 0's store. The executor forwards it to the other ranks.
struct Rendezvous {
  std::string host;
  int port = 0;
};

// A message of an unknown type. It is ignored, because the other end may be newer.
struct Unknown {};

// ---- rank -> executor

struct Report {
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> metrics;  // NaN and infinities allowed
  double seconds = 0;                                   // training time since the attempt began
  // Whether rank 0 waits for a verdict on this report. Optional: without it, an executor decides by
  // the milestone.
  std::optional<bool> waits;
};

// Points of curves between reports.
struct Logged {
  double step = 0;  // finite, at least 0; 2.25 is a quarter of the way from step 2 to step 3
  std::vector<std::pair<std::string, double>> metrics;  // as in a report
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

// The rank is alive, and may send nothing more for `silence`.
struct Heartbeat {
  std::chrono::milliseconds silence{0};
};

// The rank has waited at `step` for these ranks for a while. Any other message of the rank ends the
// wait.
struct Waiting {
  std::vector<int> ranks;
  int64_t step = 0;
};

// A child process of a rank's process requests the start line. Its rank comes from its environment:
// the executor's rank, or the rank that a launcher such as torchrun assigned.
struct Join {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// A program that has joined asks to send the messages of its rank.
struct Claim {};

// The program is about to end. Its connections may close long before its process ends. `message`
// says why, and is used if the exit status is not 0; empty: not known.
struct Leaving {
  std::string message;
};

// Why the rank is about to fail.
struct ErrorText {
  std::string message;
  bool lost_peer = false;  // another rank failed, as this rank observed
  bool disk_full = false;  // a disk or a quota of this host is full
};

struct Done {};

// Both functions accept only valid messages, so the result can be stored, forwarded and shown
// without further checks. An error names the field, its value and the allowed values, and quotes
// the beginning of the line.
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

// The step of a report, from `value`, its metric `time_attr`; nullopt if the report lacks that
// metric. `last` is the step of the previous report. A report within the same unit of time gets the
// same step. kInvalid if the value is missing, not finite, or less than `last`.
Result<int64_t> StepOfTime(const std::string& time_attr, std::optional<double> value, int64_t last);

// Why an executor refuses these metrics: their names or their number. Empty if it accepts them.
std::string MetricsProblem(const std::vector<std::pair<std::string, double>>& metrics);

// The parameters as a JSON object in their order, with a newline.
std::string ToJson(const std::vector<NamedValue>& parameters);

}  // namespace attune::channel
