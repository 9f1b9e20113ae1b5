#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "channel/messages.h"
#include "executor/processes/loop.h"
#include "system/unique_fd.h"

namespace re2 {
class RE2;
}

namespace attune::gang {

using channel::Report;

// Longer lines are skipped.
inline constexpr size_t kLogLineBytesMax = 64 * 1024;

// Reads reports from the output of rank 0, for programs that do not use the worker channel. Each
// line that matches the pattern (RE2, which runs in linear time) is a report.
//
// The named groups of the pattern are metrics, except for `step`. Without the group `step`, each
// matching line is the next step. If the first step is 0, the program counts from 0, so 1 is added
// to each step. With `time_attr`, that metric is the step, and the first line of each step is the
// report.
//
// Lines end with a newline or, as in progress bars, with a carriage return. Escape codes of
// terminals are ignored.
//
// A slow reader loses nothing, because unread lines stay in the file. Use on the loop's thread
// only.
class LogReports {
 public:
  struct Options {
    std::string pattern;
    std::string time_attr;  // empty: steps are counted
    int64_t step = 0;       // last step before this attempt
  };

  // Reads lines that are appended to `log` from now on; `more` is called after each change of the
  // file.
  static Result<std::unique_ptr<LogReports>> Open(Loop& loop, const std::filesystem::path& log,
                                                  const Options& options,
                                                  std::function<void()> more);
  ~LogReports();

  // Returns the next report. nullopt at the end of the output (is_at_end()), or after many lines
  // without a report, so that other work of the loop can run. An error quotes the line and says why
  // it is wrong.
  Result<std::optional<Report>> Next();

  bool is_at_end() const { return at_end_; }

  // The offset up to which the file has been read.
  uint64_t position() const { return position_; }

  // The program prints nothing more, so the last line counts even without its newline.
  void Close() { closed_ = true; }

  // Whether any line was a report.
  bool has_found_report() const { return found_; }

 private:
  LogReports(Loop& loop, UniqueFd file, uint64_t position, UniqueFd changes, const Options& options,
             std::function<void()> more);

  std::optional<std::string_view> NextLine();
  bool FillBuffer();
  Result<std::optional<Report>> ParseLine(std::string_view line);

  UniqueFd file_;
  UniqueFd changes_;
  Loop::Subscription watch_;
  std::unique_ptr<re2::RE2> pattern_;
  Loop::Clock::time_point began_ = Loop::Clock::now();
  const std::string time_attr_;
  int64_t step_;
  int64_t first_step_ = 1;  // 0 or 1, as the program counts
  std::string last_line_;   // the line of the last report
  uint64_t position_;
  std::string buffer_;
  size_t begin_ = 0;       // of the current line
  bool skipping_ = false;  // the current line is too long
  bool closed_ = false;
  bool at_end_ = false;
  bool found_ = false;
};

}  // namespace attune::gang
