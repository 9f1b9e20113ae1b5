#include "server/http/routes/checkpoints/checkpoints.h"

#include <limits>
#include <utility>

#include "server/http/answers/answers.h"
#include "server/http/answers/render.h"
#include "server/http/answers/trial_record.h"
#include "server/http/routes/api.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

Json Listed(Backend& backend, SweepId sweep, const std::vector<KeptRow>& rows) {
  Json json = KeptToJson(sweep, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const CheckpointRow& kept = rows[i].checkpoint;
    json[i]["stored"] = backend.IsStored({{sweep, rows[i].trial}, kept.attempt, kept.step});
  }
  return json;
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
  const std::string next = page->more ? PageToken(of, first.value + *size) : "";
  return JsonAnswer({{"checkpoints", Listed(backend_, target.sweep(), page->checkpoints)},
                     {"next_page_token", next}});
}

Response Checkpoints::Get(const Request&, const Target& target) {
  return Answer(target.checkpoint(), 200, "");
}

Response Checkpoints::Drop(const Request& request, const Target& target) {
  const CheckpointId id = target.checkpoint();
  const auto row = reader_.Checkpoint(id);
  if (!row.ok()) return Problem(row.error());
  if (row->checkpoint.dropped) return Answer(id, 200, "it was dropped before");
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
  Json json = std::move(Listed(backend_, id.trial.sweep, {*row}).front());
  json["dropped"] = row->checkpoint.dropped ? Json(*row->checkpoint.dropped) : Json();
  json["reason"] = row->checkpoint.reason;
  if (!effect.empty()) json["effect"] = effect;
  return JsonAnswer(json, status);
}

Response Checkpoints::Content(const Request& request, const Target& target) {
  const auto file = request.Query("file");
  if (!file || file->empty())
    return Problem(400, "file: say which of the checkpoint's files, such as manifest.json");
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

}  // namespace attune::server
