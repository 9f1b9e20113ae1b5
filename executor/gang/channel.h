#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "executor/gang/facts.h"
#include "executor/gang/or_error.h"
#include "executor/gang/spec.h"

namespace attune::gang {

// The language of the worker channel (docs/worker-channel.md), in both directions.

// Bytes of one line, its newline not counted.
inline constexpr size_t kLineBytesMax = 1 << 20;
inline constexpr int64_t kSilenceMsMax = int64_t{7} * 24 * 3600 * 1000;  // a week
inline constexpr int kMetricsMax = 1000;                                 // of one report
inline constexpr size_t kMetricNameBytesMax = 256;
inline constexpr int64_t kIntegerMax = (int64_t{1} << 53) - 1;  // steps, bytes: exact in any JSON

// ---- rank -> executor

// Where rank 0's store listens; goes on to the other ranks.
struct Rendezvous {
  std::string host;
  int port = 0;
};

struct Progress {
  int64_t step = 0;
};

// The rank is alive, and may say nothing more for `silence`.
struct Heartbeat {
  std::chrono::milliseconds silence{0};
};

// Why the rank is about to fail.
struct ErrorText {
  std::string message;
  bool lost_peer = false;  // the failure of another rank, as this one sees it
};

struct Done {};

// A type this executor does not know; ignored, so that workers may be newer than executors.
struct Unknown {};

using Message = std::variant<Rendezvous, Report, CheckpointSaved, Progress, Heartbeat, ErrorText,
                             Done, Unknown>;

// What passes can be stored, sent on and shown as it is; everything else is refused here, where it
// can be blamed on the rank that wrote it. The error names the field, its value and what it must
// be, and quotes the beginning of the line.
OrError<Message> ParseMessage(std::string_view line);

// Cuts a byte stream into lines.
class LineReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }

  // The next complete line without its newline, valid until the next call of either function.
  // Empty when there is none yet, or when the line at hand is_too_long().
  std::optional<std::string_view> Next();

  // The line at hand is longer than kLineBytesMax. Nothing more will come from Next().
  bool is_too_long() const { return too_long_; }
  std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }

 private:
  std::string buffer_;
  size_t begin_ = 0;    // of the line at hand
  size_t scanned_ = 0;  // no newline between begin_ and here
  bool too_long_ = false;
};

// The beginning of a line, fit to be quoted in a message.
std::string Quote(std::string_view line);

// ---- executor -> rank; all with their newline

std::string StartLine(const GangSpec& spec, const RankSlot& slot);
std::string RendezvousLine(const Rendezvous& rendezvous);
std::string VerdictLine(const Verdict& verdict);
std::string YieldLine();

// The configuration as a JSON object in the order of the sweep file, for ${config}.
std::string ConfigJson(const std::vector<NamedValue>& config);

// GPUs of the gang on this host in the order of its ranks: CUDA_VISIBLE_DEVICES.
std::vector<int> VisibleGpus(const GangSpec& spec);

}  // namespace attune::gang
