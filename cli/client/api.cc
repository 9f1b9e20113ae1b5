#include "cli/client/api.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/result.h"
#include "cli/client/code_upload.h"
#include "json/parse.h"
#include "system/random_word.h"

namespace attune::cli {
namespace {

constexpr size_t kDocumentBytesMax = 1 << 20;  // the server's limit for a body
constexpr int64_t kLogSliceBytes = 1 << 20;
constexpr int64_t kPageSize = 1'000;  // the server's limit
constexpr size_t kKeyBytes = 16;      // of an idempotency key
constexpr int kCodeSentMax = 2;       // snapshots sent for one sweep

const std::string kSweeps = "/api/v1/sweeps";
const std::string kExecutors = "/api/v1/executors";

Error NotAttune() {
  return {ErrorCode::kCorrupt, "the answer is not from an Attune server; check --server"};
}

// `file`: the document that was sent, for messages.
template <class T>
Answer<T> ReadAnswer(const Result<Reply>& reply, std::string_view file = "") {
  if (!reply.ok()) return reply.error();
  if (!reply->ok()) return ErrorOf(*reply, file);
  Json document = ParseJson<Json>(reply->body);
  if (!document.is_object()) return NotAttune();
  Result<T> value = rest::Parse<T>(document);
  if (!value.ok()) {
    return Error{ErrorCode::kInternal,
                 "unexpected answer from the server: " + value.error().message +
                     "\nthe server may have another version; compare with `attune version`"};
  }
  return Parsed<T>{*std::move(value), std::move(document)};
}

template <class T>
Answer<T> GetAnswer(HttpClient& client, const Request& request) {
  return ReadAnswer<T>(client.Get(request));
}

template <class T>
Answer<T> PostAnswer(HttpClient& client, const Request& request, const Json& body) {
  return ReadAnswer<T>(client.Post(request, Dump(body), "application/json"));
}

// The code that the server needs before it creates a sweep; nullopt: it refused for another reason,
// or did not refuse.
std::optional<rest::RequiredCode> RequiredCode(const Result<Reply>& reply) {
  if (!reply.ok() || reply->ok()) return std::nullopt;
  const auto problem = rest::Parse<rest::Problem>(ParseJson<Json>(reply->body));
  return problem.ok() ? problem->code : std::nullopt;
}

// Appends the lists of a page to the lists of the previous pages.
void AppendPage(Json& document, Json page) {
  for (auto& [name, value] : page.items()) {
    Json& member = document[name];
    if (member.is_array() && value.is_array()) {
      member.insert(member.end(), value.begin(), value.end());
    } else {
      member = std::move(value);
    }
  }
}

// Reads pages until there are no more, or until there are `limit` items.
template <class List, class Item>
Answer<List> GetAllPages(HttpClient& client, Request request, std::vector<Item> List::*items,
                         std::optional<int64_t> limit = std::nullopt) {
  Parsed<List> all;
  do {
    const int64_t left = limit ? *limit - std::ssize(all.*items) : kPageSize;
    if (left <= 0) break;
    request.query["page_size"] = std::to_string(std::min(left, kPageSize));
    if (!all.next_page_token.empty()) request.query["page_token"] = all.next_page_token;
    Answer<List> page = GetAnswer<List>(client, request);
    if (!page.ok()) return page.error();
    std::ranges::move((*page).*items, std::back_inserter(all.*items));
    all.next_page_token = page->next_page_token;
    AppendPage(all.document, std::move(page->document));
  } while (!all.next_page_token.empty());
  return all;
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

// Whether the text is an s and a number. Ids become part of a path, so anything else is refused.
bool IsId(std::string_view text) {
  return text.size() > 1 && text.front() == 's' &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// The name as a segment of a path, percent-encoded.
std::string EncodePathSegment(std::string_view name) {
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
          "`" + id + "` is not the id of a sweep, such as s1\nlist them with `attune sweep list`"};
}

// A piece of a file in an answer whose header x-file-size has the size of the file.
Result<checkpoints::Piece> PieceOf(Result<Reply> reply) {
  if (!reply.ok()) return reply.error();
  if (!reply->ok()) return ErrorOf(*reply);
  const int64_t size = HeaderNumber(*reply, "x-file-size", -1);
  if (size < 0) return NotAttune();
  return checkpoints::Piece{.data = std::move(reply->body),
                            .file_bytes = static_cast<uint64_t>(size)};
}

}  // namespace

Result<SweepDocument> SweepDocument::Read(const std::filesystem::path& path) {
  // A relative path throws if the working directory was deleted (cli/run.cc).
  std::ifstream stream(std::filesystem::absolute(path), std::ios::binary);
  std::error_code error;
  const int code = errno;
  const bool is_folder = std::filesystem::is_directory(path, error);
  if (!stream || is_folder) {
    const bool is_missing = is_folder || code == ENOENT || code == ENOTDIR;
    return Error{is_missing ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                 "cannot read the sweep file " + path.string() + ": " +
                     (is_folder ? "it is a folder" : std::strerror(code))};
  }
  SweepDocument document{.path = path};
  document.text.resize(kDocumentBytesMax + 1);
  stream.read(document.text.data(), static_cast<std::streamsize>(document.text.size()));
  document.text.resize(static_cast<size_t>(stream.gcount()));
  if (document.text.size() > kDocumentBytesMax) {
    return Error{ErrorCode::kInvalid,
                 path.string() + " is larger than 1 MiB, the maximum for a sweep file"};
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
                                        "` is not a trial; write SWEEP/NUMBER such as s1/17\nlist "
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
          "` is not a checkpoint; write SWEEP/NUMBER/ATTEMPT-STEP such as s1/17/2-900\nlist "
          "them with `attune trial get`"};
}

Answer<rest::SweepDetail> Api::Sweep(const std::string& id) {
  if (!IsId(id)) return BadId(id);
  return GetAnswer<rest::SweepDetail>(client_, {.path = kSweeps + '/' + id});
}

Answer<rest::ResolvedSweep> Api::ResolvedSweep(const std::string& id) {
  if (!IsId(id)) return BadId(id);
  return GetAnswer<rest::ResolvedSweep>(client_, {.path = kSweeps + '/' + id + "/resolved"});
}

Answer<rest::SweepList> Api::Sweeps() {
  return GetAllPages(client_, {.path = kSweeps}, &rest::SweepList::sweeps);
}

Result<std::string> Api::NewestSweep() {
  const auto page =
      GetAnswer<rest::SweepList>(client_, {.path = kSweeps, .query = {{"page_size", "1"}}});
  if (!page.ok()) return page.error();
  if (page->sweeps.empty()) {
    return Error{ErrorCode::kNotFound,
                 "no sweep yet\ncreate one with `attune sweep create -f sweep.yaml`"};
  }
  return page->sweeps.front().id;
}

Answer<rest::TrialList> Api::Trials(const std::string& sweep, const TrialQuery& query) {
  if (!IsId(sweep)) return BadId(sweep);
  Request request{.path = kSweeps + '/' + sweep + "/trials"};
  if (!query.order_by.empty()) request.query["order_by"] = query.order_by;
  if (!query.filter.empty()) request.query["filter"] = query.filter;
  return GetAllPages(client_, std::move(request), &rest::TrialList::trials, query.limit);
}

Answer<rest::CheckpointList> Api::Checkpoints(const std::string& sweep) {
  if (!IsId(sweep)) return BadId(sweep);
  return GetAllPages(client_, {.path = kSweeps + '/' + sweep + "/checkpoints"},
                     &rest::CheckpointList::checkpoints);
}

Answer<rest::TrialDetail> Api::Trial(const TrialName& trial) {
  return GetAnswer<rest::TrialDetail>(client_, {.path = TrialPath(trial)});
}

Answer<rest::Importance> Api::Importance(const std::string& sweep,
                                         const std::optional<std::string>& metric,
                                         const std::optional<std::string>& mode) {
  if (!IsId(sweep)) return BadId(sweep);
  Request request{.path = kSweeps + '/' + sweep + "/importance"};
  if (metric.has_value()) request.query["metric"] = *metric;
  if (mode.has_value()) request.query["mode"] = *mode;
  return GetAnswer<rest::Importance>(client_, request);
}

Answer<rest::SweepCost> Api::Cost(const std::string& sweep) {
  if (!IsId(sweep)) return BadId(sweep);
  return GetAnswer<rest::SweepCost>(client_, {.path = kSweeps + '/' + sweep + "/cost"});
}

Answer<rest::Activity> Api::Activity(const std::string& sweep, int limit) {
  if (!IsId(sweep)) return BadId(sweep);
  Request request{.path = kSweeps + '/' + sweep + "/activity"};
  request.query["page_size"] = std::to_string(limit);
  return GetAnswer<rest::Activity>(client_, request);
}

Result<std::string> Api::Report(const std::string& sweep) {
  if (!IsId(sweep)) return BadId(sweep);
  Result<Reply> reply = client_.Get({.path = kSweeps + '/' + sweep + "/report"});
  if (!reply.ok()) return reply.error();
  if (!reply->ok()) return ErrorOf(*reply);
  if (!reply->headers["content-type"].starts_with("text/html")) return NotAttune();
  return std::move(reply->body);
}

Answer<rest::Explanation> Api::Explanation(const TrialName& trial, std::optional<int64_t> step) {
  Request request{.path = TrialPath(trial) + "/explanation"};
  if (step.has_value()) request.query["step"] = std::to_string(*step);
  return GetAnswer<rest::Explanation>(client_, request);
}

Answer<rest::Schedule> Api::Schedule(const TrialName& trial) {
  return GetAnswer<rest::Schedule>(client_, {.path = TrialPath(trial) + "/schedule"});
}

Answer<rest::AttemptEnvironment> Api::Environment(const TrialName& trial) {
  return GetAnswer<rest::AttemptEnvironment>(client_, {.path = TrialPath(trial) + "/environment"});
}

Answer<rest::SweepDetail> Api::CreateSweep(const SweepDocument& document) {
  Request request{.path = kSweeps,
                  .query = {{"directory", document.directory().string()},
                            {"file", document.path.filename().string()}},
                  .headers = {}};
  // The server may delete a snapshot between the upload and the next request.
  for (int sent = 0;; ++sent) {
    request.headers["Idempotency-Key"] = RandomWord(kKeyBytes);
    const Result<Reply> reply = client_.Post(
        request, document.text, document.json() ? "application/json" : "application/yaml");
    const auto required = RequiredCode(reply);
    if (!required || !required->digest.empty() || sent == kCodeSentMax)
      return ReadAnswer<rest::SweepDetail>(reply, document.path.string());
    if (!NamesRequired(document.text, *required))
      return Error{ErrorCode::kDenied,
                   "the server asks for files that " + document.path.string() +
                       " does not name: it may be a wrong server; nothing was sent"};
    const Result<SentCode> code = SendCode(client_, *required, document.directory());
    if (!code.ok()) return code.error();
    request.query["code_digest"] = code->digest;
    request.query["code_commit"] = code->collected.commit;
    request.query["code_dirty"] = code->collected.dirty ? "true" : "false";
  }
}

Answer<rest::SteeredSweep> Api::SteerSweep(const std::string& id, const std::string& action,
                                           const Json& body) {
  if (!IsId(id)) return BadId(id);
  return PostAnswer<rest::SteeredSweep>(client_, {.path = kSweeps + '/' + id + ':' + action}, body);
}

Answer<rest::DeletedSweep> Api::DeleteSweep(const std::string& id, int delay_seconds) {
  if (!IsId(id)) return BadId(id);
  Request request{.path = kSweeps + '/' + id};
  if (delay_seconds > 0) request.query["delay"] = std::to_string(delay_seconds);
  return ReadAnswer<rest::DeletedSweep>(client_.Delete(request));
}

Answer<rest::Replay> Api::Replay(const std::string& id, const Json& changes,
                                 std::optional<int> slots) {
  if (!IsId(id)) return BadId(id);
  Request request{.path = kSweeps + '/' + id + ":replay"};
  if (slots.has_value()) request.query["slots"] = std::to_string(*slots);
  return PostAnswer<rest::Replay>(client_, request, changes);
}

Answer<rest::SteeredTrial> Api::SteerTrial(const TrialName& trial, const std::string& action,
                                           const Json& body) {
  return PostAnswer<rest::SteeredTrial>(client_, {.path = TrialPath(trial) + ':' + action}, body);
}

Answer<rest::ExecutorList> Api::Executors() {
  return GetAnswer<rest::ExecutorList>(client_, {.path = kExecutors});
}

Answer<rest::OccupancyList> Api::Occupancies() {
  return GetAnswer<rest::OccupancyList>(client_, {.path = "/api/v1/occupancy"});
}

Answer<rest::Queue> Api::Queue(int limit) {
  Request request{.path = "/api/v1/queue"};
  request.query["page_size"] = std::to_string(limit);
  return GetAnswer<rest::Queue>(client_, request);
}

Answer<rest::DemandList> Api::Demand() {
  return GetAnswer<rest::DemandList>(client_, {.path = "/api/v1/demand"});
}

Answer<rest::FleetList> Api::Pilots() {
  return GetAnswer<rest::FleetList>(client_, {.path = "/api/v1/pilots"});
}

Status Api::ReportPilots(const rest::FleetReport& report) {
  const auto answer =
      PostAnswer<rest::FleetName>(client_, {.path = "/api/v1/pilots:report"}, rest::ToJson(report));
  return answer.ok() ? Status() : answer.error();
}

Answer<rest::SteeredExecutor> Api::SteerExecutor(const std::string& name, const std::string& action,
                                                 const Json& body) {
  return PostAnswer<rest::SteeredExecutor>(
      client_, {.path = kExecutors + '/' + EncodePathSegment(name) + ':' + action}, body);
}

Answer<rest::SteeredTrial> Api::PinCheckpoint(const CheckpointName& checkpoint, bool pinned) {
  return PostAnswer<rest::SteeredTrial>(
      client_, {.path = CheckpointPath(checkpoint) + (pinned ? ":pin" : ":unpin")}, Json::object());
}

Answer<rest::SteeredCheckpoint> Api::DropCheckpoint(const CheckpointName& checkpoint) {
  return ReadAnswer<rest::SteeredCheckpoint>(client_.Delete({.path = CheckpointPath(checkpoint)}));
}

Result<checkpoints::Piece> Api::CheckpointContent(const CheckpointName& checkpoint,
                                                  const std::string& file, uint64_t offset) {
  return PieceOf(client_.Get({.path = CheckpointPath(checkpoint) + "/content",
                              .query = {{"file", file}, {"offset", std::to_string(offset)}},
                              // Weights do not compress.
                              .headers = {{"Accept-Encoding", "identity"}}}));
}

Answer<rest::TrialDetail> Api::EnqueueTrial(const std::string& sweep, const rest::NewTrial& trial) {
  if (!IsId(sweep)) return BadId(sweep);
  return PostAnswer<rest::TrialDetail>(client_,
                                       {.path = kSweeps + '/' + sweep + "/trials",
                                        .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}},
                                       rest::ToJson(trial));
}

Answer<rest::Offer> Api::AskTrial(const std::string& sweep, const rest::Ask& ask) {
  if (!IsId(sweep)) return BadId(sweep);
  return PostAnswer<rest::Offer>(client_,
                                 {.path = kSweeps + '/' + sweep + "/trials:ask",
                                  .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}},
                                 rest::ToJson(ask));
}

Answer<rest::Verdict> Api::TellTrial(const TrialName& trial, const rest::Tell& tell) {
  const Result<Reply> reply = client_.Post(
      {.path = TrialPath(trial) + ":tell", .headers = {{"Idempotency-Key", RandomWord(kKeyBytes)}}},
      Dump(rest::ToJson(tell)), "application/json");
  if (reply.ok() && reply->status == 204) return Parsed<rest::Verdict>{{}, Json::object()};
  return ReadAnswer<rest::Verdict>(reply);
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

Result<checkpoints::Piece> Api::CodePiece(const std::string& digest, const std::string& part,
                                          uint64_t offset) {
  const std::string hex = digest.substr(digest.find(':') + 1);
  return PieceOf(client_.Get({.path = "/api/v1/code/" + hex + '/' + part,
                              .query = {{"offset", std::to_string(offset)}},
                              .headers = {}}));
}

Answer<rest::Version> Api::Version() {
  return GetAnswer<rest::Version>(client_, {.path = "/version"});
}

}  // namespace attune::cli
