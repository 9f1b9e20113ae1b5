#include "server/http/routes/checkpoints/checkpoints.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "server/http/answers/answers.h"
#include "server/http/answers/effects.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/answers/trial_record.h"
#include "server/http/routes/request/body.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

StoredCopy CopyOf(Backend& backend, SweepId sweep, const KeptRow& row) {
  const CheckpointRow& checkpoint = row.checkpoint;
  const CheckpointId id{{sweep, row.trial}, checkpoint.attempt, checkpoint.step};
  if (checkpoint.stored.empty() || checkpoint.dropped)
    return {.exists = backend.IsStored(id, checkpoint.digest)};
  return {.exists = true, .url = backend.UrlOfCopy(id, checkpoint.digest, checkpoint.stored)};
}

}  // namespace

Response Checkpoints::List(const Request& request, const Target& target) {
  const auto size = IntegerQuery(request, "page_size", kTrialsPageMax, 1, kTrialsPageMax);
  if (!size.ok()) return Problem(size.error());
  const std::string of = ToString(target.sweep()) + "/checkpoints";
  const auto token = ParsePageToken(of, request);
  if (!token.ok()) return Problem(token.error());
  const TrialNumber first(static_cast<uint32_t>(token->value_or(0)));
  const auto page = reader_.Checkpoints(target.sweep(), first, static_cast<int>(*size));
  if (!page.ok()) return Problem(page.error());
  rest::CheckpointList list{.next_page_token =
                                page->more ? PageToken(of, first.value + *size) : ""};
  for (const KeptRow& kept : page->checkpoints)
    list.checkpoints.push_back(
        RenderCheckpoint(target.sweep(), kept, CopyOf(backend_, target.sweep(), kept)));
  return Render(list);
}

Response Checkpoints::Get(const Request&, const Target& target) {
  return Answer(target.checkpoint(), 200, "");
}

Response Checkpoints::Drop(const Request& request, const Target& target) {
  const CheckpointId id = target.checkpoint();
  const auto row = reader_.Checkpoint(id);
  if (!row.ok()) return Problem(row.error());
  if (row->checkpoint.dropped) return Answer(id, 200, "it was deleted before");
  const auto detail = reader_.Detail(id.trial);
  if (!detail.ok()) return Problem(detail.error());
  const auto sweep = reader_.Sweep(id.trial.sweep);
  if (!sweep.ok()) return Problem(sweep.error());
  const auto events =
      backend_.Execute(DropCheckpoint{id, RecordOf(*detail, sweep->spec)}, request.actor);
  if (!events.ok()) return Problem(events.error());
  return Answer(id, 202, "its executor deletes the files");
}

Response Checkpoints::Answer(const CheckpointId& id, int status, const std::string& effect) {
  const auto row = reader_.Checkpoint(id);
  if (!row.ok()) return Problem(row.error());
  const SweepId sweep = id.trial.sweep;
  rest::CheckpointDetail detail =
      RenderCheckpointDetail(sweep, *row, CopyOf(backend_, sweep, *row));
  if (effect.empty()) return Render(detail, status);
  return Render(rest::SteeredCheckpoint{{std::move(detail)}, effect}, status);
}

Response Checkpoints::Content(const Request& request, const Target& target) {
  const auto file = request.Query("file");
  if (!file || file->empty())
    return Problem(rest::ProblemType::kInvalidRequest,
                   "file: name one of the checkpoint's files, such as manifest.json");
  const auto offset = IntegerQuery(request, "offset", 0, 0, std::numeric_limits<int64_t>::max());
  if (!offset.ok()) return Problem(offset.error());
  const auto limit = IntegerQuery(request, "limit", kContentDefaultBytes, 1, kContentMaxBytes);
  if (!limit.ok()) return Problem(limit.error());

  auto piece = backend_.ReadCheckpoint(target.checkpoint(), *file, static_cast<uint64_t>(*offset),
                                       static_cast<uint32_t>(*limit));
  if (!piece.ok()) return Problem(piece.error());
  Response response{.content_type = "application/octet-stream"};
  response.Set("X-File-Size", std::to_string(piece->file_bytes)).Set("Cache-Control", "no-store");
  response.body = std::move(piece->data);
  return response;
}

Response Checkpoints::Pin(const Request& request, const Target& target) {
  return SetPinned(request, target, true);
}

Response Checkpoints::Unpin(const Request& request, const Target& target) {
  return SetPinned(request, target, false);
}

Response Checkpoints::SetPinned(const Request& request, const Target& target, bool pinned) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto detail = reader_.Detail(target.trial);
  if (!detail.ok()) return Problem(detail.error());
  const auto& all = detail->checkpoints;
  const auto found = std::ranges::find_if(all, [&](const CheckpointRow& row) {
    return row.attempt == target.attempt && row.step == target.step;
  });
  const std::string name = "checkpoint " + std::to_string(target.attempt) + "-" +
                           std::to_string(target.step.value) + " of trial " +
                           ToString(target.trial);
  if (found == all.end()) return Problem(rest::ProblemType::kNotFound, "there is no " + name);
  if (found->dropped)
    return Problem(rest::ProblemType::kCheckpointDropped, name + " was deleted: " + found->reason);
  const auto events = backend_.Execute(PinCheckpoint{target.checkpoint(), pinned}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Trial(
      target.trial, kAccepted,
      pinned ? "it is kept until it is unpinned" : "it is deleted when nothing else needs it");
}

}  // namespace attune::server
