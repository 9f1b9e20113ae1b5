#include "executor/environments/environment_build.h"

#include <system_error>
#include <utility>

#include "base/message_limits.h"
#include "executor/environments/build_steps.h"
#include "executor/gang/folders.h"
#include "system/files.h"
#include "system/system_error.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kErrorBytesMax = 2048;  // of the output in an error

// Lets programs of the environment import the package attune of this host, unless the environment
// has one. A link to the package alone does not show them other packages of the host.
Status LinkAttune(const fs::path& attune, const fs::path& environment) {
  std::error_code failed;
  for (const fs::directory_entry& python : fs::directory_iterator(environment / "lib", failed)) {
    const fs::path packages = python.path() / "site-packages";
    const fs::path link = packages / "attune";
    if (!fs::is_directory(packages, failed) || fs::exists(link, failed)) continue;
    fs::create_directory_symlink(attune, link, failed);
    if (failed) return SystemError("cannot make " + link.string(), failed.value());
  }
  return {};
}

}  // namespace

Status EnvironmentBuild::Start() {
  Result<UniqueFd> log = gang::OpenLog(plan_.log);
  if (!log.ok()) return log.error();
  log_ = std::move(*log);
  timeout_ = services_.loop.CallAfter(plan_.timeout, [this] {
    command_.reset();
    const auto ended = events_.ended;
    ended(Invalid("it was not ready after " +
                  std::to_string(std::chrono::ceil<std::chrono::seconds>(plan_.timeout).count()) +
                  " s"));
  });
  return RunNext();
}

Status EnvironmentBuild::RunNext() {
  const RunningCommand::Request& step = plan_.steps[next_++];
  auto command = RunningCommand::Start(
      services_, step,
      {.line = [this](std::string_view line) { OnLine(line); },
       .ended = [this](std::optional<ExitStatus> status) { OnStepEnded(status); }});
  if (!command.ok()) return command.error();
  command_ = std::move(*command);
  return {};
}

void EnvironmentBuild::OnLine(std::string_view line) {
  if (log_bytes_ + line.size() < kLogBytesMax) {
    log_bytes_ += line.size() + 1;
    WriteAt(log_.get(), std::string(line) + "\n", 0);
  }
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kErrorLinesMax) last_lines_.pop_front();
  events_.line(line);
}

void EnvironmentBuild::OnStepEnded(std::optional<ExitStatus> status) {
  Status ended = status && status->ok() ? Status() : FailedStep(status);
  if (ended.ok() && next_ < plan_.steps.size()) {
    ended = RunNext();
    if (ended.ok()) return;
  } else if (ended.ok() && !plan_.attune.empty()) {
    ended = LinkAttune(plan_.attune, plan_.environment);
  }
  const auto call = events_.ended;
  call(std::move(ended));
}

Status EnvironmentBuild::FailedStep(std::optional<ExitStatus> status) const {
  std::string what = "`" + ToLine(plan_.steps[next_ - 1]) + "` ";
  if (!status)
    what += "ended, but nobody knows how";
  else if (status->signal != 0)
    what += "was killed by signal " + std::to_string(status->signal);
  else
    what += "ended with exit code " + std::to_string(status->exit_code);
  std::string lines;
  for (const std::string& line : last_lines_) lines += "\n" + line;
  const bool is_host_fault =
      !status || status->signal != 0 || !HasFreeSpace(plan_.environment.parent_path());
  return Error{is_host_fault ? ErrorCode::kUnavailable : ErrorCode::kInvalid,
               what + (lines.empty() ? "" : ":" + CutBeginning(lines, kErrorBytesMax))};
}

}  // namespace attune::agent
