#include "executor/record/git_commit.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "executor/processes/environment.h"
#include "system/spawn.h"

namespace attune::agent {
namespace {

// Variables of git in this process's environment could name another repository.
std::vector<std::string> GitEnvironment() {
  std::vector<std::string> environment = gang::ProgramEnvironment({});
  std::erase_if(environment, [](const std::string& each) { return each.starts_with("GIT_"); });
  for (const char* each : {"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1"})
    environment.emplace_back(each);
  return environment;
}

}  // namespace

std::optional<GitCommit> ReadGitCommit(const std::filesystem::path& folder, ChildPrograms& children,
                                       std::chrono::milliseconds timeout) {
  const char* const path = std::getenv("PATH");
  const Result<std::filesystem::path> git =
      FindProgram("git", {}, path == nullptr ? "/usr/bin:/bin" : path);
  if (!git.ok()) return std::nullopt;
  const auto run = [&](std::vector<std::string> arguments) {
    std::vector<std::string> argv{"git",
                                  "-C",
                                  folder.empty() ? "." : folder.string(),
                                  "-c",
                                  "core.fsmonitor=false",
                                  "-c",
                                  "core.hooksPath=/dev/null"};
    argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
                std::make_move_iterator(arguments.end()));
    return children.Output(
        {.program = *git, .argv = std::move(argv), .environment = GitEnvironment()}, timeout);
  };
  std::optional<std::string> commit = run({"rev-parse", "--verify", "--quiet", "HEAD"});
  if (!commit) return std::nullopt;
  commit->erase(std::min(commit->find('\n'), commit->size()));
  const auto changes = run({"status", "--porcelain", "--untracked-files=no"});
  return GitCommit{*std::move(commit), changes ? std::optional(!changes->empty()) : std::nullopt};
}

}  // namespace attune::agent
