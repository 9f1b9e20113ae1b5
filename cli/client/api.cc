#include "cli/client/api.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/result.h"
#include "json/parse.h"
#include "system/random_word.h"

namespace attune::cli {
namespace {

constexpr size_t kDocumentBytesMax = 1 << 20;  // the server's limit of a body
constexpr int64_t kLogSliceBytes = 1 << 20;
constexpr size_t kKeyBytes = 16;  // of an idempotency key

const std::string kSweeps = "/api/v1/sweeps";
const std::string kExecutors = "/api/v1/executors";

Result<Json> JsonOf(const Result<Reply>& reply, std::string_view document = "") {
  if (!reply.ok()) return reply.error();
  if (!reply->ok()) return ErrorOf(*reply, document);
  Json json = ParseJson<Json>(reply->body);
  if (!json.is_object()) {
    return Error{ErrorCode::kCorrupt,
                 "the server's answer is not what an Attune server says; is --server right?"};
  }
  return json;
}

int64_t HeaderNumber(const Reply& reply, const std::string& name, int64_t fallback) {
  const auto found = reply.headers.find(name);
  if (found == reply.headers.end()) return fallback;
  int64_t number = fallback;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

std::string TrialPath(const TrialName& trial) {
  return kSweeps + '/' + trial.sweep + "/trials/" + std::to_string(trial.number);
}

std::string CheckpointPath(const CheckpointName& checkpoint) {
  return TrialPath(checkpoint.trial) + "/checkpoints/" + checkpoint.name;
}

// An s and a number. Ids become part of a path, so nothing else may pass.
bool IsId(std::string_view text) {
  return text.size() > 1 && text.front() == 's' &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// A name that people have chosen, as a segment of a path.
std::string InPath(std::string_view name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != kPlain.npos) {
      text += c;
    } else {
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

Error BadId(const std::string& id) {
  return {ErrorCode::kInvalid,
          "`" + id + "` is not a sweep's id such as s1\nsee them with `attune sweep list`"};
}

}  // namespace

Result<SweepDocument> SweepDocument::Read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::error_code error;
  const int code = errno;
  const bool is_folder = std::filesystem::is_directory(path, error);
  if (!stream || is_folder) {
    return Error{ErrorCode::kNotFound, "cannot read the sweep file " + path.string() + ": " +
                                           (is_folder ? "it is a folder" : std::strerror(code))};
  }
  SweepDocument document{.path = path};
  document.text.resize(kDocumentBytesMax + 1);
  stream.read(document.text.data(), static_cast<std::streamsize>(document.text.size()));
  document.text.resize(static_cast<size_t>(stream.gcount()));
  if (document.text.size() > kDocumentBytesMax) {
    return Error{ErrorCode::kInvalid, path.string() + " is larger than a sweep file may be, 1 MiB"};
  }
  return document;
}

std::filesystem::path SweepDocument::directory() const {
  return std::filesystem::absolute(path).lexically_normal().parent_path();
}

Result<TrialName> TrialName::Parse(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "/") + word;
  const size_t slash = text.find('/');
  TrialName trial{.sweep = text.substr(0, slash)};
  if (slash != std::string::npos && IsId(trial.sweep)) {
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data() + slash + 1, end, trial.number);
    if (error == std::errc() && read == end && trial.number >= 0) return trial;
  }
  return Error{ErrorCode::kInvalid, "`" + text +
                                        "` is not a trial; write SWEEP/NUMBER such as s1/17\nsee "
                                        "them with `attune trial list`"};
}

Result<CheckpointName> CheckpointName::Parse(const std::string& text) {
  const size_t slash = text.rfind('/');
  const std::string name = slash == std::string::npos ? "" : text.substr(slash + 1);
  const Result<TrialName> trial = TrialName::Parse({text.substr(0, slash)});
  const bool named = name.find('-') != std::string::npos &&
                     name.find_first_not_of("0123456789-") == std::string::npos;
  if (trial.ok() && named) return CheckpointName{*trial, name};
  return Error{
      ErrorCode::kInvalid,
      "`" + text +
          "` is not a checkpoint; write SWEEP/NUMBER/ATTEMPT-STEP such as s1/17/2-900\nsee "
          "them with `attune trial get`"};
}

Result<Json> Api::GetJson(const Request& request) { return JsonOf(client_.Get(request)); }

Result<Json> Api::PostJson(const Request& request, const Json& body) {
  return JsonOf(client_.Post(request, body.dump(), "application/json"));
}

Result<Json> Api::AllPages(const std::string& path, const std::string& items) {
  Json all = Json::array();
  std::string page_token;
  do {
    Request request{.path = path, .query = {{"page_size", "1000"}}};
    if (!page_token.empty()) request.query["page_token"] = page_token;
    Result<Json> page = GetJson(request);
    if (!page.ok()) return page.error();
    for (Json& item : (*page)[items]) all.push_back(std::move(item));
    page_token = page->value("next_page_token", "");
  } while (!page_token.empty());
  return all;
}

Result<Json> Api::Sweep(const std::string& id) {
  if (!IsId(id)) return BadId(id);
  return GetJson({.path = kSweeps + '/' + id});
}

Result<Json> Api::Sweeps() { return AllPages(kSweeps, "sweeps"); }

Result<std::string> Api::NewestSweep() {
  Result<Json> page = GetJson({.path = kSweeps, .query = {{"page_size", "1"}}});
  if (!page.ok()) return page.error();
  if ((*page)["sweeps"].empty()) {
    return Error{ErrorCode::kNotFound,
                 "there is no sweep yet\ncreate one with `attune sweep create -f sweep.yaml`"};
  }
  return (*page)["sweeps"][0].value("id", "");
}

Result<Json> Api::Trials(const std::string& sweep) {
  if (!IsId(sweep)) return BadId(sweep);
  return AllPages(kSweeps + '/' + sweep + "/trials", "trials");
}

Result<Json> Api::Checkpoints(const std::string& sweep) {
  if (!IsId(sweep)) return BadId(sweep);
  return AllPages(kSweeps + '/' + sweep + "/checkpoints", "checkpoints");
}

Result<Json> Api::Trial(const TrialName& trial) { return GetJson({.path = TrialPath(trial)}); }

Result<Json> Api::Importance(const std::string& sweep, const std::optional<std::string>& metric) {
  if (!IsId(sweep)) return BadId(sweep);
  Request request{.path = kSweeps + '/' + sweep + "/importance"};
  if (metric.has_value()) request.query["metric"] = *metric;
  return GetJson(request);
}

Result<Json> Api::Explanation(const TrialName& trial, std::optional<int64_t> step) {
  Request request{.path = TrialPath(trial) + "/explanation"};
  if (step.has_value()) request.query["step"] = std::to_string(*step);
  return GetJson(request);
}

Result<Json> Api::Schedule(const TrialName& trial) {
  return GetJson({.path = TrialPath(trial) + "/schedule"});
}

Result<Json> Api::CreateSweep(const SweepDocument& document) {
  Request request{.path = kSweeps,
                  .query = {{"directory", document.directory().string()},
                            {"file", document.path.filename().string()}},
                  .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}};
  return JsonOf(client_.Post(request, document.text,
                             document.json() ? "application/json" : "application/yaml"),
                document.path.string());
}

Result<Json> Api::SteerSweep(const std::string& id, const std::string& verb, const Json& body) {
  if (!IsId(id)) return BadId(id);
  return PostJson({.path = kSweeps + '/' + id + ':' + verb}, body);
}

Result<Json> Api::DeleteSweep(const std::string& id) {
  if (!IsId(id)) return BadId(id);
  return JsonOf(client_.Delete({.path = kSweeps + '/' + id}));
}

Result<Json> Api::Replay(const std::string& id, const Json& changes, std::optional<int> slots) {
  if (!IsId(id)) return BadId(id);
  Request request{.path = kSweeps + '/' + id + ":replay"};
  if (slots.has_value()) request.query["slots"] = std::to_string(*slots);
  return PostJson(request, changes);
}

Result<Json> Api::SteerTrial(const TrialName& trial, const std::string& verb, const Json& body) {
  return PostJson({.path = TrialPath(trial) + ':' + verb}, body);
}

Result<Json> Api::Executors() {
  const Result<Json> answer = GetJson({.path = kExecutors});
  if (!answer.ok()) return answer.error();
  return At(*answer, "executors");
}

Result<Json> Api::Pilots() {
  const Result<Json> answer = GetJson({.path = "/api/v1/pilots"});
  if (!answer.ok()) return answer.error();
  return At(*answer, "fleets");
}

Status Api::ReportPilots(const Json& report) {
  const Result<Json> answer = PostJson({.path = "/api/v1/pilots:report"}, report);
  return answer.ok() ? Status() : answer.error();
}

Result<Json> Api::Demand() {
  const Result<Json> answer = GetJson({.path = "/api/v1/demand"});
  if (!answer.ok()) return answer.error();
  return At(*answer, "demand");
}

Result<Json> Api::SteerExecutor(const std::string& name, const std::string& verb,
                                const Json& body) {
  return PostJson({.path = kExecutors + '/' + InPath(name) + ':' + verb}, body);
}

Result<Json> Api::PinCheckpoint(const CheckpointName& checkpoint, bool pinned) {
  return PostJson({.path = CheckpointPath(checkpoint) + (pinned ? ":pin" : ":unpin")},
                  Json::object());
}

Result<Json> Api::DropCheckpoint(const CheckpointName& checkpoint) {
  return JsonOf(client_.Delete({.path = CheckpointPath(checkpoint)}));
}

Result<checkpoints::Piece> Api::CheckpointContent(const CheckpointName& checkpoint,
                                                  const std::string& file, uint64_t offset) {
  Result<Reply> reply =
      client_.Get({.path = CheckpointPath(checkpoint) + "/content",
                   .query = {{"file", file}, {"offset", std::to_string(offset)}},
                   .headers = {{"Accept-Encoding", "identity"}}});  // weights do not pack
  if (!reply.ok()) return reply.error();
  if (!reply->ok()) return ErrorOf(*reply);
  const int64_t size = HeaderNumber(*reply, "x-file-size", -1);
  if (size < 0)
    return Error{ErrorCode::kCorrupt,
                 "the server's answer is not what an Attune server says; is --server right?"};
  return checkpoints::Piece{.data = std::move(reply->body),
                            .file_bytes = static_cast<uint64_t>(size)};
}

Result<Json> Api::EnqueueTrial(const std::string& sweep, const Json& config) {
  if (!IsId(sweep)) return BadId(sweep);
  return PostJson({.path = kSweeps + '/' + sweep + "/trials",
                   .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}},
                  {{"config", config}});
}

Result<Json> Api::AskTrial(const std::string& sweep, const std::string& lease) {
  if (!IsId(sweep)) return BadId(sweep);
  return PostJson({.path = kSweeps + '/' + sweep + "/trials:ask",
                   .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}},
                  lease.empty() ? Json::object() : Json{{"lease", lease}});
}

Result<Json> Api::TellTrial(const TrialName& trial, const Json& body) {
  const Result<Reply> reply = client_.Post(
      {.path = TrialPath(trial) + ":tell", .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}},
      body.dump(), "application/json");
  if (reply.ok() && reply->status == 204) return Json::object();
  return JsonOf(reply);
}

Result<Api::LogSlice> Api::Log(const TrialName& trial, int rank, std::optional<int> attempt,
                               int64_t offset) {
  Request request{.path = TrialPath(trial) + "/logs",
                  .query = {{"rank", std::to_string(rank)},
                            {"offset", std::to_string(offset)},
                            {"limit", std::to_string(kLogSliceBytes)}}};
  if (attempt.has_value()) request.query["attempt"] = std::to_string(*attempt);
  Result<Reply> reply = client_.Get(request);
  if (!reply.ok()) return reply.error();
  if (!reply->ok()) return ErrorOf(*reply);
  LogSlice slice{.data = std::move(reply->body)};
  slice.offset = HeaderNumber(*reply, "x-log-offset", std::max<int64_t>(offset, 0));
  slice.file_bytes =
      HeaderNumber(*reply, "x-log-size", slice.offset + static_cast<int64_t>(slice.data.size()));
  return slice;
}

Result<Json> Api::Version() { return GetJson({.path = "/version"}); }

}  // namespace attune::cli
