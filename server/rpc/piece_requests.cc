#include "server/rpc/piece_requests.h"

#include <utility>

namespace attune::server {

Result<v1::CheckpointPiece> PieceRequests::Await(const std::string& executor, const Ask& ask) {
  uint64_t request = 0;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kPieceRequestsMax)
      return Error{ErrorCode::kUnavailable,
                   std::to_string(kPieceRequestsMax) +
                       " readers of checkpoints wait for their executors already: try again in a "
                       "moment"};
    request = ++last_;
    waiting_[request].executor = executor;
  }
  const bool asked = ask(request);
  std::unique_lock lock(mutex_);
  Waiting& waiting = waiting_.at(request);
  if (asked) changed_.wait_for(lock, kPiecePatience, [&] { return waiting.piece || waiting.gone; });
  Waiting answer = std::move(waiting);
  waiting_.erase(request);
  lock.unlock();
  if (!asked || answer.gone)
    return Error{ErrorCode::kUnavailable, "executor " + executor + " is not connected"};
  if (!answer.piece)
    return Error{ErrorCode::kUnavailable, "executor " + executor + " did not answer within " +
                                              std::to_string(kPiecePatience.count()) +
                                              " s; is it of an older version?"};
  if (!answer.piece->error().empty())
    return Error{ErrorCode::kNotFound, "executor " + executor + ": " + answer.piece->error()};
  return *std::move(answer.piece);
}

void PieceRequests::OnPiece(const v1::CheckpointPiece& piece) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(piece.request());
  if (found == waiting_.end()) return;
  found->second.piece = piece;
  changed_.notify_all();
}

void PieceRequests::OnGone(const std::string& executor) {
  const std::lock_guard lock(mutex_);
  for (auto& [request, waiting] : waiting_) waiting.gone |= waiting.executor == executor;
  changed_.notify_all();
}

}  // namespace attune::server
