#include "cli/views/failure.h"

#include <algorithm>

#include "base/result.h"
#include "cli/text/width.h"

namespace attune::cli {

// A failure is several lines: a sentence and the end of a log.
std::vector<std::string> FailureLog(const rest::TrialDetail& trial) {
  if (trial.attempts.empty()) return {};
  const std::string& failure = trial.attempts.back().failure;
  std::vector<std::string> lines;
  for (size_t end = failure.find('\n'); end < failure.size();) {
    const size_t next = std::min(failure.find('\n', end + 1), failure.size());
    const std::string line = Clean(failure.substr(end + 1, next - end - 1));
    if (!line.empty()) lines.push_back("  " + line);
    end = next;
  }
  return lines;
}

std::vector<std::string> LastFailure(Api& api, const std::vector<rest::Trial>& trials) {
  const rest::Trial* last = nullptr;
  for (const rest::Trial& trial : trials) {
    if (trial.state == "failed" && (last == nullptr || trial.ended >= last->ended)) last = &trial;
  }
  if (last == nullptr) return {};
  const auto trial = api.Trial({.sweep = last->sweep, .number = last->number});
  if (!trial.ok()) return {};
  std::vector<std::string> lines = FailureLog(*trial);
  if (lines.empty()) return {};
  const rest::Attempt& attempt = trial->attempts.back();
  const std::string sentence = Clean(FirstLine(attempt.failure));
  lines.insert(lines.begin(), {"", "trial " + std::to_string(last->number) + ", attempt " +
                                       std::to_string(attempt.number) + ": " + sentence});
  return lines;
}

}  // namespace attune::cli
