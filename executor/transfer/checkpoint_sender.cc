#include "executor/transfer/checkpoint_sender.h"

#include <chrono>
#include <utility>

#include "base/result.h"
#include "base/utf8.h"
#include "checkpoints/piece.h"

namespace attune::agent {
namespace {

constexpr std::chrono::seconds kDeliveryTimeout{30};  // longer than any receiver waits for a piece

v1::CheckpointPiece Read(const gang::Folders& folders, const v1::CheckpointRequest& request) {
  v1::CheckpointPiece answer;
  answer.set_request(request.request());
  const auto folder =
      CheckpointFolderPath(folders, request.sweep(), request.trial(), request.folder());
  if (!folder) {
    answer.set_error(ValidUtf8('"' + request.folder() + "\" is not the folder of a checkpoint"));
    return answer;
  }
  Result<checkpoints::Piece> piece =
      checkpoints::ReadPiece(*folder, request.file(), request.offset(), request.limit_bytes());
  if (!piece.ok()) {
    answer.set_error(ValidUtf8(piece.error().message));
    return answer;
  }
  answer.set_data(std::move(piece->data));
  answer.set_file_bytes(piece->file_bytes);
  return answer;
}

}  // namespace

std::optional<std::filesystem::path> CheckpointFolderPath(const gang::Folders& folders,
                                                          uint64_t sweep, uint32_t trial,
                                                          const std::string& name) {
  if (name.find('/') != name.npos || !checkpoints::NameFault(name).empty()) return std::nullopt;
  return folders.Checkpoints({.sweep = sweep, .trial = trial}) / name;
}

CheckpointSender::CheckpointSender(gang::Folders folders, ServerStub stub, std::string token)
    : folders_(std::move(folders)), stub_(std::move(stub)), token_(std::move(token)) {
  for (int i = 0; i < kSenders; ++i) threads_.emplace_back([this] { Run(); });
}

CheckpointSender::~CheckpointSender() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (grpc::ClientContext* const call : calls_) call->TryCancel();
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void CheckpointSender::Send(v1::CheckpointRequest request) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() == kPiecesQueuedMax) queue_.pop_front();
  queue_.push_back(std::move(request));
  changed_.notify_one();
}

void CheckpointSender::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const v1::CheckpointRequest request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    v1::CheckpointPiece piece = Read(folders_, request);
    piece.set_token(token_);
    SendPiece(piece);
    lock.lock();
  }
}

void CheckpointSender::SendPiece(const v1::CheckpointPiece& piece) {
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kDeliveryTimeout);
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    calls_.insert(&call);
  }
  v1::Delivered delivered;
  // Errors are ignored: a server that was away no longer knows the receiver.
  if (const auto stub = stub_()) stub->Deliver(&call, piece, &delivered);
  const std::lock_guard lock(mutex_);
  calls_.erase(&call);
}

}  // namespace attune::agent
