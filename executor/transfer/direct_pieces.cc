#include "executor/transfer/direct_pieces.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "attune/v1/executor.pb.h"
#include "checkpoints/piece.h"
#include "logging/log.h"

namespace attune::agent {
namespace {

// Small enough that received data is hashed and written while it is in the CPU's cache.
constexpr uint64_t kPieceBytes = 1 << 20;

}  // namespace

PieceSource::Answer DirectPieces::Read(gang::RemoteFiles& files, const std::string& file,
                                       uint64_t offset, std::string memory) {
  checkpoints::Piece piece{.data = std::move(memory)};
  while (!files.servers.empty()) {
    const gang::PieceServer& server = files.servers.front();
    const std::string from = "executor " + server.executor + " at " + server.address;
    const std::string problem = ReadFrom(files, file, offset, piece);
    if (problem.empty()) return {.piece = std::move(piece), .directly_from = from};
    Disconnect();
    if (IsCancelled()) return {.piece = UnreadableError("cancelled")};
    logging::Warn("{} cannot be read directly from {}: {}", gang::ToString(files), from, problem);
    files.servers.erase(files.servers.begin());
  }
  return fallback_.Read(files, file, offset, std::move(piece.data));
}

std::string DirectPieces::ReadFrom(const gang::RemoteFiles& files, const std::string& file,
                                   uint64_t offset, checkpoints::Piece& piece) {
  const bool expected = file == file_ && offset == at_ && at_ < file_bytes_;
  // The rest of that file would arrive first.
  if (socket_ && !expected && at_ < file_bytes_) Disconnect();
  if (!socket_) {
    if (std::string problem = Connect(files.servers.front()); !problem.empty()) return problem;
  }
  if (!expected) {
    if (std::string problem = RequestFile(files, file, offset); !problem.empty()) return problem;
  }
  piece.file_bytes = file_bytes_;
  piece.data.resize(std::min<uint64_t>(file_bytes_ - at_, kPieceBytes));
  if (!Receive(socket_.get(), piece.data.data(), piece.data.size()))
    return "the connection broke or timed out";
  at_ += piece.data.size();
  return "";
}

std::string DirectPieces::Connect(const gang::PieceServer& server) {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return "cancelled";
    socket_ = NewSocket();
  }
  SetTimeouts(socket_.get(), timeouts_.connect, timeouts_.connect);
  if (!agent::Connect(socket_.get(), server.address, server.port)) return "it cannot be reached";
  SetTimeouts(socket_.get(), timeouts_.greeting, timeouts_.greeting);
  if (!AuthenticateSender(socket_.get(), server.key)) return "it is busy or has another key";
  SetTimeouts(socket_.get(), timeouts_.piece, timeouts_.piece);
  return "";
}

std::string DirectPieces::RequestFile(const gang::RemoteFiles& files, const std::string& file,
                                      uint64_t offset) {
  v1::DirectRequest request;
  if (files.code.empty()) {
    request.set_sweep(files.name.sweep);
    request.set_trial(files.name.trial);
    request.set_folder(files.folder);
  } else {
    request.set_code(files.code);
  }
  request.set_file(file);
  request.set_offset(offset);
  v1::DirectAnswer answer;
  if (!SendMessage(socket_.get(), request) || !ReceiveMessage(socket_.get(), answer))
    return "it does not answer";
  file_ = file;
  file_bytes_ = answer.file_bytes();
  at_ = std::min(offset, file_bytes_);
  return answer.error();
}

void DirectPieces::Close() {
  Disconnect();
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = false;
  }
  fallback_.Close();
}

void DirectPieces::Disconnect() {
  {
    const std::lock_guard lock(mutex_);
    socket_.reset();
  }
  file_.clear();
  at_ = file_bytes_ = 0;
}

void DirectPieces::Cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (socket_) shutdown(socket_.get(), SHUT_RDWR);
  }
  fallback_.Cancel();
}

bool DirectPieces::IsCancelled() {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

}  // namespace attune::agent
