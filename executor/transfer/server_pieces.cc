#include "executor/transfer/server_pieces.h"

#include <chrono>
#include <utility>

#include "checkpoints/piece.h"

namespace attune::agent {
namespace {

// Longer than the server waits for the executor that has the files.
constexpr std::chrono::seconds kPieceTimeout{30};

}  // namespace

PieceSource::Answer ServerPieces::Read(gang::RemoteFiles& files, const std::string& file,
                                       uint64_t offset, std::string) {
  v1::FetchRequest request;
  request.set_token(token_);
  if (files.code.empty()) {
    request.mutable_checkpoint()->set_sweep(files.name.sweep);
    request.mutable_checkpoint()->set_trial(files.name.trial);
    request.mutable_checkpoint()->set_attempt(files.name.attempt);
    request.mutable_checkpoint()->set_step(files.name.step);
  } else {
    request.set_code(files.code);
  }
  request.set_file(file);
  request.set_offset(offset);
  request.set_limit_bytes(checkpoints::kPieceBytesMax);

  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kPieceTimeout);
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return {.piece = UnreadableError("cancelled")};
    calls_.insert(&call);
  }
  v1::CheckpointPiece piece;
  const auto stub = stub_();
  const grpc::Status status =
      stub ? stub->Fetch(&call, request, &piece) : grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
  {
    const std::lock_guard lock(mutex_);
    calls_.erase(&call);
  }
  if (!status.ok())
    return {.piece = UnreadableError(status.error_message().empty() ? "the server does not answer"
                                                                    : status.error_message()),
            .is_final = status.error_code() == grpc::StatusCode::NOT_FOUND};
  return {.piece = checkpoints::Piece{.data = std::move(*piece.mutable_data()),
                                      .file_bytes = piece.file_bytes()}};
}

void ServerPieces::Close() {
  const std::lock_guard lock(mutex_);
  cancelled_ = false;
}

void ServerPieces::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* const call : calls_) call->TryCancel();
}

}  // namespace attune::agent
