#include "executor/agent/log_reader.h"

#include "base/result.h"
#include "base/utf8.h"
#include "executor/agent/messages.h"

namespace attune::agent {
namespace {

v1::LogChunk ReadChunk(const gang::Folders& folders, const v1::LogRequest& request) {
  v1::LogChunk chunk;
  chunk.set_request(request.request());
  const std::filesystem::path log = gang::RankLog(folders.Attempt(FromProto(request.attempt())),
                                                  static_cast<int>(request.rank()));
  Result<gang::LogPiece> piece = gang::ReadLog(log, request.offset(), request.limit_bytes());
  if (!piece.ok()) {
    chunk.set_error(ValidUtf8(piece.error().message));
    return chunk;
  }
  chunk.set_data(std::move(piece.value().data));
  chunk.set_offset(piece.value().offset);
  chunk.set_file_bytes(piece.value().file_bytes);
  chunk.set_gap_begin(piece.value().gap.begin);
  chunk.set_gap_end(piece.value().gap.end);
  return chunk;
}

}  // namespace

LogReader::LogReader(gang::Folders folders, Done done)
    : folders_(std::move(folders)), done_(std::move(done)), thread_([this] {
        while (!stop_)
          for (const auto& work : mailbox_.TakeUntil(std::chrono::steady_clock::time_point::max()))
            work();
      }) {}

LogReader::~LogReader() {
  mailbox_.Post([this] { stop_ = true; });
  thread_.join();
}

void LogReader::Read(v1::LogRequest request) {
  mailbox_.Post([this, request = std::move(request)] { done_(ReadChunk(folders_, request)); });
}

}  // namespace attune::agent
