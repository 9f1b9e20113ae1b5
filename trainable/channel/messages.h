#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/metrics.h"

// The lines of the worker channel (docs/worker-channel.md) as values. `Parse…` throw attune::Error
// quoting the line; `ToLine` gives a line with its newline.
namespace attune::trainable {

struct Resume {
  std::int64_t step = 0;
  std::string path;
  std::string digest;  // of the manifest; empty: not known
};

struct Start {
  std::string sweep;
  std::int64_t trial = 0;
  int attempt = 1;
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string device = "cpu";
  int cpus = 1;
  std::uint64_t seed = 0;
  Config config;
  std::int64_t milestone = 0;  // 0: none
  std::int64_t max_step = 0;   // 0: none
  std::int64_t checkpoint_every = 0;
  std::string checkpoint_dir;  // empty: keep no checkpoints
  std::optional<Resume> resume;
};

struct Rendezvous {
  std::string host;
  std::uint16_t port = 0;
};

struct Verdict {
  enum class Action : std::int64_t { kContinue, kStop, kPause };
  std::int64_t step = 0;
  Action action = Action::kContinue;
  std::int64_t milestone = 0;  // of the next decision; 0: none
};

// Rank 0 is to wait for a verdict at its next report, milestone or not.
struct YieldLine {};

// What an executor takes of one report (docs/worker-channel.md).
inline constexpr std::size_t kMetricsMax = 1000;
inline constexpr std::size_t kMetricNameBytesMax = 256;

struct ReportLine {
  std::int64_t step = 0;
  Metrics metrics;
  double seconds = 0;
  bool waits = false;  // rank 0 goes no further before it has a verdict
};

struct ProgressLine {
  std::int64_t step = 0;
};

// This rank is alive, and may say nothing more for `silence` without being taken for stuck.
struct HeartbeatLine {
  std::chrono::milliseconds silence{0};
};

struct ErrorLine {
  std::string message;
  bool lost_peer = false;  // the failure of another rank, as this one sees it
};

struct DoneLine {};

// What an executor says; std::monostate for a type that this version does not know.
using FromExecutor = std::variant<std::monostate, Start, Rendezvous, Verdict, YieldLine>;
FromExecutor ParseFromExecutor(std::string_view line);

// What a rank says.
using FromRank = std::variant<std::monostate, Rendezvous, ReportLine, CheckpointInfo, ProgressLine,
                              ErrorLine, DoneLine>;
FromRank ParseFromRank(std::string_view line);

std::string ToLine(const Start& start);
std::string ToLine(const Rendezvous& rendezvous);
std::string ToLine(const Verdict& verdict);
// Throws Error where a metric's name is one that an executor refuses, or there are too many.
std::string ToLine(const ReportLine& report);
std::string ToLine(const CheckpointInfo& checkpoint);
std::string ToLine(const ProgressLine& progress);
std::string ToLine(const HeartbeatLine& heartbeat);
std::string ToLine(const ErrorLine& error);
std::string ToLine(const DoneLine& done);

}  // namespace attune::trainable
