#include "executor/agent/fetching_gangs.h"

#include <utility>

namespace attune::agent {

void FetchingGangs::Run(gang::GangSpec spec) {
  if (!spec.fetch || !spec.resume || !spec.HasRankZero()) return gangs_.Run(std::move(spec));
  const gang::AttemptId attempt = spec.attempt;
  const gang::RemoteCheckpoint checkpoint = *spec.fetch;
  const std::string digest = spec.resume->digest;
  waiting_.insert_or_assign(attempt, Waiting{std::move(spec)});
  fetches_.fetch(attempt, checkpoint, digest);
}

void FetchingGangs::OnFetched(const gang::AttemptId& attempt, const Fetched& fetched) {
  const auto found = waiting_.find(attempt);
  if (found == waiting_.end()) return;
  if (!fetched.error.empty()) {
    // A damaged or missing checkpoint is the trial's failure; all other errors are the host's.
    return End(attempt, {gang::Outcome::kFailed,
                         gang::Failure{.kind = fetched.is_final ? gang::FailureKind::kExit
                                                                : gang::FailureKind::kHost,
                                       .exit_code = -1,
                                       .message = fetched.error}});
  }
  Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  waiting.spec.resume->path = fetched.folder;
  gangs_.Run(std::move(waiting.spec));
  if (waiting.yields) gangs_.Yield(attempt);
}

void FetchingGangs::Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) {
  if (!waiting_.contains(attempt)) return gangs_.Cancel(attempt, reason);
  if (reason == gang::CancelReason::kUnwanted || reason == gang::CancelReason::kFailedElsewhere)
    return End(attempt, {gang::Outcome::kCancelled, {}});
  End(attempt,
      {gang::Outcome::kFailed,
       gang::Failure{
           .kind = gang::FailureKind::kLease,
           .message = "its executor ended or lost its lease before the checkpoint was fetched"}});
}

void FetchingGangs::Yield(const gang::AttemptId& attempt) {
  const auto found = waiting_.find(attempt);
  if (found == waiting_.end()) return gangs_.Yield(attempt);
  found->second.yields = true;
}

void FetchingGangs::End(const gang::AttemptId& attempt, gang::Ended ended) {
  waiting_.erase(attempt);
  fetches_.release(attempt);
  ended_(attempt, std::move(ended));
}

}  // namespace attune::agent
