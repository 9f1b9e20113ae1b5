#include "cli/views/failure.h"

#include <algorithm>

#include "base/result.h"
#include "cli/text/width.h"

namespace attune::cli {

// A failure is several lines: a sentence and the end of a log.
std::vector<std::string> FailureLog(const Json& trial) {
  const Json& attempts = At(trial, "attempts_list");
  if (!attempts.is_array() || attempts.empty()) return {};
  const std::string failure = TextAt(attempts.back(), "failure");
  std::vector<std::string> lines;
  for (size_t end = failure.find('\n'); end < failure.size();) {
    const size_t next = std::min(failure.find('\n', end + 1), failure.size());
    const std::string line = Clean(failure.substr(end + 1, next - end - 1));
    if (!line.empty()) lines.push_back("  " + line);
    end = next;
  }
  return lines;
}

std::vector<std::string> LastFailure(Api& api, const Json& trials) {
  const Json* last = nullptr;
  for (const Json& trial : trials) {
    if (TextAt(trial, "state") != "failed") continue;
    if (last == nullptr || TextAt(trial, "ended") >= TextAt(*last, "ended")) last = &trial;
  }
  if (last == nullptr) return {};
  const TrialName name{.sweep = TextAt(*last, "sweep"), .number = WholeAt(*last, "number")};
  const Result<Json> trial = api.Trial(name);
  if (!trial.ok()) return {};
  std::vector<std::string> lines = FailureLog(*trial);
  if (lines.empty()) return {};
  lines.insert(lines.begin(), {"", "the last lines of trial " + std::to_string(name.number)});
  return lines;
}

}  // namespace attune::cli
