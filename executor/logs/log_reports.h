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

// Lines of more bytes are passed over.
inline constexpr size_t kLogLineBytesMax = 64 * 1024;

// The reports of a program that knows nothing of the worker channel, read from what its rank 0
// prints: each line in which the pattern (RE2, whose time is linear in the line) is found. Its
// named groups are metrics, but for `step`; without that, each such line is the next step. If the
// first step is 0, the program counts from 0, and 1 is added to each. With `time_attr` that metric
// says the step, and the first line of each is the report. Lines end with a newline or, as those of
// progress bars, with a carriage return; escape codes of terminals do not count.
//
// Nothing is lost when the reader is slow: what is not read stays in the file. Used on the loop's
// thread only.
class LogReports {
 public:
  struct Options {
    std::string pattern;
    std::string time_attr;  // empty: steps are counted
    int64_t step = 0;       // that is done already
  };

  // Reads what is appended to `log` from now on; `more` is called when there is some.
  static Result<std::unique_ptr<LogReports>> Open(Loop& loop, const std::filesystem::path& log,
                                                  const Options& options,
                                                  std::function<void()> more);
  ~LogReports();

  // The next report. Empty at the end of what was printed (is_at_end()), or after a turn's worth of
  // lines without one. An error quotes the line and says what is wrong with it.
  Result<std::optional<Report>> Next();

  bool is_at_end() const { return at_end_; }

  // How far the file has been read.
  uint64_t position() const { return position_; }

  // Nothing more will be printed: the last line counts without its end.
  void Close() { closed_ = true; }

  // Whether any line was a report.
  bool has_found() const { return found_; }

 private:
  LogReports(Loop& loop, UniqueFd file, uint64_t position, UniqueFd changes, const Options& options,
             std::function<void()> more);

  std::optional<std::string_view> NextLine();
  bool Fill();
  Result<std::optional<Report>> Read(std::string_view line);

  UniqueFd file_;
  UniqueFd changes_;
  Loop::Subscription watch_;
  std::unique_ptr<re2::RE2> pattern_;
  Loop::Clock::time_point began_ = Loop::Clock::now();
  const std::string time_attr_;
  int64_t step_;
  int64_t first_step_ = 1;  // as the program counts
  std::string last_line_;   // the last report
  uint64_t position_;
  std::string buffer_;
  size_t begin_ = 0;       // of the line at hand
  bool skipping_ = false;  // it is too long
  bool closed_ = false;
  bool at_end_ = false;
  bool found_ = false;
};

}  // namespace attune::gang
