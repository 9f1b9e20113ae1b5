#include "executor/gang/blame.h"

#include <signal.h>
#include <string.h>

#include <algorithm>

#include "base/message_limits.h"

namespace attune::gang {
namespace {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::string DescribeExit(int rank, const ExitStatus& exit) {
  const std::string who = "rank " + std::to_string(rank);
  if (exit.signal == SIGKILL) {
    return who + " was killed by SIGKILL, but not by Attune; the host may have run out of memory";
  }
  if (exit.signal != 0) {
    const char* meaning = sigdescr_np(exit.signal);
    return who + " was killed by " + SignalName(exit.signal) +
           (meaning ? " (" + std::string(meaning) + ")" : "");
  }
  return who + " left with exit code " + std::to_string(exit.exit_code);
}

}  // namespace

const Symptom& FindCulprit(const std::vector<Symptom>& symptoms) {
  const auto cause = std::ranges::find(symptoms, false, &Symptom::lost_peer);
  return cause == symptoms.end() ? symptoms.front() : *cause;
}

Failure DescribeFailure(const Symptom& symptom, std::optional<int> left) {
  Failure failure{
      .rank = symptom.rank, .lost_peer = symptom.lost_peer, .disk_full = symptom.disk_full};
  if (!symptom.error.empty())
    failure.message =
        CutEnd("rank " + std::to_string(symptom.rank) + ": " + symptom.error, kErrorTextBytesMax);
  if (symptom.lost_peer && left && *left != symptom.rank) {
    failure.rank = *left;
    failure.message =
        CutEnd("rank " + std::to_string(*left) + " has exited with status 0 while rank " +
                   std::to_string(symptom.rank) +
                   " was in a collective call; make all ranks take the same number of steps, with "
                   "drop_last of the data loader or DistributedDataParallel.join(). " +
                   failure.message,
               kErrorTextBytesMax);
    return failure;
  }
  if (symptom.disk_full) failure.kind = FailureKind::kHost;
  if (!symptom.exit) {
    failure.exit_code = -1;
    return failure;
  }
  if (!symptom.disk_full)
    failure.kind = symptom.exit->signal != 0 ? FailureKind::kSignal : FailureKind::kExit;
  failure.exit_code = symptom.exit->exit_code;
  failure.signal = symptom.exit->signal;
  if (failure.message.empty()) failure.message = DescribeExit(symptom.rank, *symptom.exit);
  return failure;
}

}  // namespace attune::gang
