#include "server/http/routes/code/code.h"

#include <limits>
#include <utility>

#include "base/result.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr uint64_t kPieceBytesMax = 4 << 20;

Response NoCodeKept() {
  return Problem(rest::ProblemType::kNotFound, "this server keeps no snapshots of code");
}

Result<uint64_t> PieceOffset(const Request& request) {
  const auto offset = IntegerQuery(request, "offset", 0, 0, std::numeric_limits<int64_t>::max());
  if (!offset.ok()) return offset.error();
  return static_cast<uint64_t>(*offset);
}

}  // namespace

Response Code::Get(const Request&, const Target& target) {
  return storage_ == nullptr ? NoCodeKept() : Answer(target, storage_->Find(target.code));
}

Response Code::GetManifest(const Request& request, const Target& target) {
  return GetPart(request, target, "manifest");
}

Response Code::GetPack(const Request& request, const Target& target) {
  return GetPart(request, target, "pack");
}

Response Code::SendManifest(const Request& request, const Target& target) {
  if (storage_ == nullptr) return NoCodeKept();
  const auto offset = PieceOffset(request);
  if (!offset.ok()) return Problem(offset.error());
  const auto last = BooleanQuery(request, "last");
  if (!last.ok()) return Problem(last.error());
  return Answer(target, storage_->AddManifest(target.code, *offset, request.body, *last));
}

Response Code::SendPack(const Request& request, const Target& target) {
  if (storage_ == nullptr) return NoCodeKept();
  const auto offset = PieceOffset(request);
  if (!offset.ok()) return Problem(offset.error());
  return Answer(target, storage_->AddPack(target.code, *offset, request.body));
}

Response Code::GetPart(const Request& request, const Target& target, std::string_view part) {
  if (storage_ == nullptr) return NoCodeKept();
  const auto offset = PieceOffset(request);
  if (!offset.ok()) return Problem(offset.error());
  auto piece = storage_->Read(target.code, part, *offset, kPieceBytesMax);
  if (!piece.ok()) return Problem(piece.error());
  Response response{.content_type = "application/octet-stream"};
  response.Set("X-File-Size", std::to_string(piece->file_bytes)).Set("Cache-Control", "no-store");
  response.body = std::move(piece->data);
  return response;
}

Response Code::Answer(const Target& target, const Result<CodeStorage::Progress>& progress) {
  if (!progress.ok()) {
    if (progress.error().code == ErrorCode::kCorrupt)
      return Problem(rest::ProblemType::kCodeDamaged, progress.error().message);
    return ProblemOfBody(progress.error());
  }
  return Render(rest::CodeSnapshot{.digest = target.code,
                                   .complete = progress->complete,
                                   .manifest_bytes = static_cast<int64_t>(progress->manifest_bytes),
                                   .missing = progress->missing,
                                   .pack_bytes = static_cast<int64_t>(progress->pack_bytes)});
}

}  // namespace attune::server
