#include "executor/agent/fetching_gangs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "code/tree.h"
#include "executor/transfer/data_copies.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// Makes the paths of the program absolute, which start at the root of its code. Trials share the
// copy of the code unless they may write to it, so that they can share a launcher.
void UseCode(const fs::path& copy, gang::GangSpec& spec) {
  gang::Program& program = spec.program;
  const fs::path root = spec.code->writable ? spec.work_dir : code::TreeOf(copy);
  const fs::path folder = program.working_directory;
  std::string& executable = program.command.front();
  if (executable.find('/') != executable.npos) executable = (root / executable).lexically_normal();
  spec.rank_directory = spec.work_dir / folder;
  program.working_directory = root / folder;
}

bool NeedsEnvironment(const gang::GangSpec& spec) {
  return spec.environment_files || spec.container;
}

// Lets a program in a container read files of this host.
void Mount(const fs::path& copy, gang::GangSpec& spec) {
  if (spec.container) spec.container->read_only.push_back(copy);
}

// Makes the paths of the environment's files absolute, which start at the root of the code. All
// trials get paths in the copy.
void FindEnvironmentFiles(const fs::path& copy, gang::EnvironmentFiles& files) {
  const fs::path root = code::TreeOf(copy);
  if (files.python.is_relative()) files.root = root;
  files.python = root / files.python;
  if (!files.wheels.empty()) files.wheels = root / files.wheels;
}

// Sets the variable with the path of a data file. All trials of the sweep get the same value, so
// that they can share a launcher.
void UseData(const Fetched& fetched, gang::GangSpec& spec) {
  const auto file = std::ranges::find_if(
      spec.data, [&](const gang::DataFile& each) { return gang::ToString(each) == fetched.name; });
  if (file == spec.data.end()) return;
  spec.program.environment.emplace_back(file->variable, PathOfData(fetched.folder, *file));
  Mount(fetched.folder, spec);
}

}  // namespace

void FetchingGangs::Run(gang::GangSpec spec) {
  const gang::AttemptId attempt = spec.attempt;
  const bool fetches_checkpoint = spec.fetch && spec.resume && spec.HasRankZero();
  const int fetches = (fetches_checkpoint ? 1 : 0) + (spec.code ? 1 : 0) +
                      static_cast<int>(spec.data.size()) + (NeedsEnvironment(spec) ? 1 : 0);
  if (fetches == 0) return gangs_.Run(std::move(spec));
  const gang::GangSpec& waiting =
      waiting_.insert_or_assign(attempt, Waiting{std::move(spec), fetches}).first->second.spec;
  if (waiting.code)
    fetches_.code(waiting);
  else if (NeedsEnvironment(waiting))
    fetches_.environment(waiting);
  if (!waiting.data.empty()) fetches_.data(waiting);
  if (fetches_checkpoint) fetches_.checkpoint(attempt, *waiting.fetch, waiting.resume->digest);
}

void FetchingGangs::OnCheckpoint(const gang::AttemptId& attempt, const Fetched& fetched) {
  OnFetched(attempt, fetched, [&](gang::GangSpec& spec) { spec.resume->path = fetched.folder; });
}

void FetchingGangs::OnCode(const gang::AttemptId& attempt, const Fetched& fetched) {
  OnFetched(attempt, fetched, [&](gang::GangSpec& spec) {
    UseCode(fetched.folder, spec);
    Mount(fetched.folder, spec);
  });
  Waiting* waiting = FindWaiting(attempt);
  if (waiting == nullptr || !NeedsEnvironment(waiting->spec)) return;
  if (waiting->spec.environment_files)
    FindEnvironmentFiles(fetched.folder, *waiting->spec.environment_files);
  fetches_.environment(waiting->spec);
}

void FetchingGangs::OnData(const gang::AttemptId& attempt, const Fetched& fetched) {
  OnFetched(attempt, fetched, [&](gang::GangSpec& spec) { UseData(fetched, spec); });
}

void FetchingGangs::OnEnvironment(const gang::AttemptId& attempt, const BuiltEnvironment& built) {
  Waiting* waiting = FindWaiting(attempt);
  if (waiting == nullptr) return;
  if (!built.error.empty())
    return End(attempt,
               {gang::Outcome::kFailed,
                gang::Failure{.kind = built.is_host_fault ? gang::FailureKind::kHost
                                                          : gang::FailureKind::kEnvironment,
                              .exit_code = -1,
                              .message = built.error}});
  waiting->environment = built.folder;
  OnFetched(attempt, {}, [&](gang::GangSpec& spec) {
    if (spec.container) spec.container->found = built.image;
  });
}

template <typename Use>
void FetchingGangs::OnFetched(const gang::AttemptId& attempt, const Fetched& fetched, Use use) {
  const auto found = waiting_.find(attempt);
  if (found == waiting_.end()) return;
  if (!fetched.error.empty()) {
    // Files that are damaged or missing at their source, or not what their hash says, are the
    // trial's failure; all other errors are the host's.
    return End(attempt, {gang::Outcome::kFailed,
                         gang::Failure{.kind = fetched.is_final ? gang::FailureKind::kExit
                                                                : gang::FailureKind::kHost,
                                       .exit_code = -1,
                                       .message = fetched.error}});
  }
  use(found->second.spec);
  if (--found->second.fetches > 0) return;
  Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  RunNow(attempt, std::move(waiting));
}

void FetchingGangs::RunNow(const gang::AttemptId& attempt, Waiting waiting) {
  // Last, so that all trials get the changes in the same order and can share a launcher.
  if (!waiting.environment.empty()) UseEnvironment(waiting.environment, waiting.spec.program);
  gangs_.Run(std::move(waiting.spec));
  if (waiting.rank_zero) gangs_.SetRendezvous(attempt, *waiting.rank_zero);
  if (waiting.verdict) gangs_.SetVerdict(attempt, *waiting.verdict);
  if (waiting.yields) gangs_.Yield(attempt);
  if (waiting.peers_finished) gangs_.OnPeersFinished(attempt);
}

FetchingGangs::Waiting* FetchingGangs::FindWaiting(const gang::AttemptId& attempt) {
  const auto found = waiting_.find(attempt);
  return found == waiting_.end() ? nullptr : &found->second;
}

void FetchingGangs::Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) {
  if (!waiting_.contains(attempt)) return gangs_.Cancel(attempt, reason);
  if (reason == gang::CancelReason::kUnwanted || reason == gang::CancelReason::kFailedElsewhere)
    return End(attempt, {gang::Outcome::kCancelled, {}});
  End(attempt, {gang::Outcome::kFailed,
                gang::Failure{.kind = gang::FailureKind::kLease,
                              .message = "its executor ended or lost its lease before the files "
                                         "that the trial needs were fetched"}});
}

void FetchingGangs::Yield(const gang::AttemptId& attempt) {
  if (Waiting* waiting = FindWaiting(attempt))
    waiting->yields = true;
  else
    gangs_.Yield(attempt);
}

void FetchingGangs::SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) {
  if (Waiting* waiting = FindWaiting(attempt))
    waiting->verdict = verdict;
  else
    gangs_.SetVerdict(attempt, verdict);
}

void FetchingGangs::OnPeersFinished(const gang::AttemptId& attempt) {
  if (Waiting* waiting = FindWaiting(attempt))
    waiting->peers_finished = true;
  else
    gangs_.OnPeersFinished(attempt);
}

void FetchingGangs::SetRendezvous(const gang::AttemptId& attempt,
                                  const channel::Rendezvous& rank_zero) {
  if (Waiting* waiting = FindWaiting(attempt))
    waiting->rank_zero = rank_zero;
  else
    gangs_.SetRendezvous(attempt, rank_zero);
}

void FetchingGangs::End(const gang::AttemptId& attempt, gang::Ended ended) {
  waiting_.erase(attempt);
  fetches_.release(attempt);
  ended_(attempt, std::move(ended));
}

}  // namespace attune::agent
