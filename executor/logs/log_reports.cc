#include "executor/logs/log_reports.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "channel/line_reader.h"
#include "executor/logs/escape_codes.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
// Per turn of the loop, so that a talkative rank does not starve the others.
constexpr size_t kScanBytesMax = 256 * 1024;
constexpr std::string_view kStep = "step";

RE2::Options QuietOptions() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

template <class Number>
std::optional<Number> Parse(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_same_v<Number, double>) {  // 1e400 becomes infinite, 1e-400 becomes 0
    if (error == std::errc::result_out_of_range)
      return std::strtod(std::string(text).c_str(), nullptr);
  }
  if (error != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace

Result<std::unique_ptr<LogReports>> LogReports::Open(Loop& loop, const std::filesystem::path& log,
                                                     const Options& options,
                                                     std::function<void()> more) {
  UniqueFd file(open(log.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t end = file ? lseek(file.get(), 0, SEEK_END) : -1;
  if (end < 0) return SystemError("cannot read " + log.string(), errno);
  UniqueFd changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!changes || inotify_add_watch(changes.get(), log.c_str(), IN_MODIFY) < 0) {
    return Error{ErrorCode::kUnavailable, "cannot watch " + log.string() +
                                              " for reports: " + std::strerror(errno) +
                                              " (see the limits in /proc/sys/fs/inotify)"};
  }
  std::unique_ptr<LogReports> reports(new LogReports(loop, std::move(file),
                                                     static_cast<uint64_t>(end), std::move(changes),
                                                     options, std::move(more)));
  if (!reports->pattern_->ok()) {
    return Invalid("reports.pattern is not a regular expression: " + reports->pattern_->error());
  }
  return reports;
}

LogReports::LogReports(Loop& loop, UniqueFd file, uint64_t position, UniqueFd changes,
                       const Options& options, std::function<void()> more)
    : file_(std::move(file)),
      changes_(std::move(changes)),
      watch_(loop.Watch(changes_.get(), EPOLLIN,
                        [fd = changes_.get(), more = std::move(more)](uint32_t) {
                          // Drains the events; their contents do not matter.
                          alignas(inotify_event) std::array<char, 4096> events;
                          while (read(fd, events.data(), events.size()) > 0) {
                          }
                          more();
                        })),
      pattern_(std::make_unique<RE2>(options.pattern, QuietOptions())),
      time_attr_(options.time_attr),
      step_(options.step),
      position_(position) {}

LogReports::~LogReports() = default;

Result<std::optional<Report>> LogReports::Next() {
  at_end_ = false;
  for (size_t seen = 0; seen < kScanBytesMax;) {
    if (const auto line = NextLine()) {
      seen += line->size() + 1;
      auto report = ParseLine(*line);
      if (!report.ok() || report.value()) return report;
    } else if (FillBuffer()) {
      seen += kReadBytes;
    } else {
      at_end_ = true;
      break;
    }
  }
  return std::optional<Report>();
}

// The next complete line, valid until FillBuffer().
std::optional<std::string_view> LogReports::NextLine() {
  for (;;) {
    const size_t end = buffer_.find_first_of("\n\r", begin_);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = end + 1;
    if (!std::exchange(skipping_, false) && line.size() <= kLogLineBytesMax) return line;
  }
  if (skipping_ || buffer_.size() - begin_ > kLogLineBytesMax) {
    skipping_ = true;
    begin_ = buffer_.size();
  }
  return std::nullopt;
}

// Reads a piece of the file; returns false at the end of the file.
bool LogReports::FillBuffer() {
  buffer_.erase(0, std::exchange(begin_, 0));
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  const ssize_t count = read(file_.get(), buffer_.data() + size, kReadBytes);
  buffer_.resize(size + std::max<ssize_t>(count, 0));
  position_ += static_cast<uint64_t>(std::max<ssize_t>(count, 0));
  if (count > 0) return true;
  if (!closed_ || buffer_.empty()) return false;
  buffer_ += '\n';
  return true;
}

Result<std::optional<Report>> LogReports::ParseLine(std::string_view printed) {
  const std::string line = WithoutEscapeCodes(printed);
  std::vector<re2::StringPiece> groups(pattern_->NumberOfCapturingGroups() + 1);
  if (!pattern_->Match({line.data(), line.size()}, 0, line.size(), RE2::UNANCHORED, groups.data(),
                       static_cast<int>(groups.size()))) {
    return std::optional<Report>();
  }
  const auto wrong = [&](const std::string& name, std::string_view text, const char* wanted) {
    return Invalid("rank 0 printed " + channel::Quote(line) + ", where reports.pattern finds " +
                   channel::Quote(text) + " as " + name + ", which is not " + wanted);
  };
  Report report{.step = step_ + 1};
  for (const auto& [name, number] : pattern_->NamedCapturingGroups()) {
    const re2::StringPiece& group = groups[number];
    if (group.data() == nullptr) continue;  // an alternative that did not match
    const std::string_view text(group.data(), group.size());
    if (name == kStep) {
      const auto step = Parse<int64_t>(text);
      if (!step || *step < 0 || *step >= channel::kIntegerMax)
        return wrong(name, text,
                     "a whole number of at least 0; without the group `step` each matching line is "
                     "the next step");
      if (!found_) first_step_ = *step == 0 ? 0 : 1;
      report.step = *step + 1 - first_step_;
    } else if (const auto value = Parse<double>(text)) {
      report.metrics.emplace_back(name, *value);
    } else {
      return wrong(name, text, "a number; write the group so that it takes the number alone");
    }
  }
  if (report.metrics.empty()) return std::optional<Report>();
  if (!time_attr_.empty()) {
    const auto time = std::ranges::find(report.metrics, time_attr_,
                                        [](const auto& metric) { return metric.first; });
    const auto step = channel::StepOfTime(
        time_attr_, time == report.metrics.end() ? std::nullopt : std::optional(time->second),
        step_);
    if (!step.ok())
      return Invalid("rank 0 printed " + channel::Quote(line) + ": " + step.error().message);
    if (step.value() == step_) return std::optional<Report>();
    report.step = step.value();
  } else if (found_ && report.step <= step_) {
    const int64_t count = report.step - 1 + first_step_;
    const std::string lines =
        "rank 0 printed " + channel::Quote(last_line_) + " and then " + channel::Quote(line);
    if (report.step == step_)
      return Invalid(lines + ": reports.pattern matches two lines of step " +
                     std::to_string(count) + "; write it so that it matches one line of each step");
    return Invalid(lines + ": step " + std::to_string(count) + " came after step " +
                   std::to_string(step_ - 1 + first_step_) + "; steps must increase");
  }
  step_ = report.step;
  last_line_ = line;
  found_ = true;
  report.seconds = std::chrono::duration<double>(Loop::Clock::now() - began_).count();
  return std::optional(std::move(report));
}

}  // namespace attune::gang
