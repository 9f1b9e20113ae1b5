#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Limits for messages of workers, executors and clients that run trials
// (docs/reference/worker-channel.md). An executor refuses messages of workers beyond these limits.
// The server does the same with messages of executors and clients.
namespace attune {

inline constexpr int kMetricsMax = 1000;  // of one report
inline constexpr size_t kMetricNameBytesMax = 256;
inline constexpr size_t kErrorTextBytesMax = 16 * 1024;  // why an attempt failed
inline constexpr size_t kLogTailBytesMax = 4 * 1024;     // the last lines of a failed rank
inline constexpr size_t kMatchedLineBytesMax = 300;      // of the line that failure.on_log found
inline constexpr size_t kPlaceBytesMax = 4 * 1024;       // a path, or the address of a host
inline constexpr size_t kRecordBytesMax = 512 * 1024;    // the record of an environment
inline constexpr size_t kProblemBytesMax = 4 * 1024;     // what is wrong with a host
inline constexpr int64_t kIntegerMax = (int64_t{1} << 53) - 1;  // steps, bytes: exact in any JSON

bool HasControlCharacters(std::string_view text);

// 1 to kMetricNameBytesMax bytes without control characters.
bool IsMetricName(std::string_view name);

// The digest of a checkpoint's manifest: sha256: and 64 lower-case hex digits.
bool IsDigest(std::string_view digest);

// Cut a text to at most `bytes_max` bytes, with a note of its length: "… (14,000,000 bytes, cut)".
// CutEnd keeps the beginning, CutBeginning keeps the end. They do not split UTF-8 characters, and
// do not change texts that are short enough. REQUIRES: bytes_max >= 64.
std::string CutEnd(std::string_view text, size_t bytes_max);
std::string CutBeginning(std::string_view text, size_t bytes_max);

}  // namespace attune
