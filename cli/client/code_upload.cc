#include "cli/client/code_upload.h"

#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/json.h"
#include "code/pack.h"
#include "json/parse.h"
#include "system/command.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = 1 << 20;  // the server's limit for a body
constexpr int kIdleRoundsMax = 5;        // conflicts in a row without progress
constexpr int kHttpConflict = 409;
constexpr size_t kDigestPrefixBytes = 7;  // sha256:

class Upload {
 public:
  Upload(HttpClient& client, fs::path folder, SentCode& code)
      : client_(client),
        folder_(std::move(folder)),
        manifest_(code.collected.manifest),
        text_(code::ToText(manifest_)),
        code_(code),
        path_("/api/v1/code/" + code.digest.substr(kDigestPrefixBytes)) {}

  Status Run() {
    if (Status found = AskProgress(); !found.ok()) return found;
    for (int idle_rounds = 0; !progress_.complete;) {
      const auto before = std::pair(progress_.manifest_bytes, progress_.pack_bytes);
      Status sent = missing_.empty() ? SendManifest() : SendPack();
      const bool conflict = !sent.ok() && sent.error().code == ErrorCode::kConflict;
      // Another client sends the same snapshot, or an answer was lost.
      if (conflict && ++idle_rounds < kIdleRoundsMax) sent = AskProgress();
      if (!sent.ok()) return sent;
      if (std::pair(progress_.manifest_bytes, progress_.pack_bytes) != before) idle_rounds = 0;
    }
    return {};
  }

 private:
  Status AskProgress() {
    missing_.clear();
    return Update(client_.Get({.path = path_}));
  }

  Status SendManifest() {
    const auto offset = static_cast<size_t>(progress_.manifest_bytes);
    if (offset > text_.size())
      return Error{ErrorCode::kConflict, "the server has a longer manifest of the code"};
    const std::string piece = text_.substr(offset, kPieceBytes);
    const bool last = offset + piece.size() == text_.size();
    return Update(client_.Post(
        {.path = path_ + "/manifest",
         .query = {{"offset", std::to_string(offset)}, {"last", last ? "true" : "false"}},
         .headers = {}},
        piece, "application/octet-stream"));
  }

  Status SendPack() {
    const auto offset = static_cast<uint64_t>(progress_.pack_bytes);
    const std::vector<code::File> files = MissingFiles();
    const auto piece = code::ReadPack(files, offset, kPieceBytes,
                                      [this](const code::File& file) { return OpenFile(file); });
    if (!piece.ok()) return piece.error();
    // After a crash, the server may have all bytes. An empty piece completes the snapshot.
    if (files.size() < missing_.size())
      return Error{ErrorCode::kInternal, "the server asks for files that are not in the code"};
    code_.sent_bytes += piece->data.size();
    return Update(client_.Post(
        {.path = path_ + "/pack", .query = {{"offset", std::to_string(offset)}}, .headers = {}},
        piece->data, "application/octet-stream"));
  }

  std::vector<code::File> MissingFiles() const {
    std::map<std::string_view, const code::File*> by_hash;
    for (const code::File& file : manifest_.files) by_hash.emplace(file.sha256, &file);
    std::vector<code::File> files;
    for (const std::string& hash : missing_) {
      const auto file = by_hash.find(hash);
      if (file != by_hash.end()) files.push_back(*file->second);
    }
    return files;
  }

  Result<checkpoints::OpenedFile> OpenFile(const code::File& file) const {
    Result<checkpoints::OpenedFile> opened = checkpoints::OpenFile(folder_, file.path);
    if (opened.ok() && opened->bytes != file.bytes)
      return Error{ErrorCode::kConflict,
                   (folder_ / file.path).string() + " changed while it was sent: try again"};
    return opened;
  }

  Status Update(const Result<Reply>& reply) {
    if (!reply.ok()) return reply.error();
    if (!reply->ok()) {
      const Error error = ErrorOf(*reply);
      return reply->status == kHttpConflict ? Error{ErrorCode::kConflict, error.message} : error;
    }
    const auto progress = rest::Parse<rest::CodeSnapshot>(ParseJson<Json>(reply->body));
    if (!progress.ok())
      return Error{ErrorCode::kCorrupt,
                   "unexpected answer from the server: " + progress.error().message};
    progress_ = *progress;
    if (!progress_.missing.empty()) missing_ = progress_.missing;
    return {};
  }

  HttpClient& client_;
  const fs::path folder_;
  const code::Manifest& manifest_;
  const std::string text_;
  SentCode& code_;
  const std::string path_;
  rest::CodeSnapshot progress_;
  std::vector<std::string> missing_;  // the newest list
};

}  // namespace

bool NamesRequired(const std::string& sweep_file, const rest::RequiredCode& required) {
  const auto names = [&](const std::string& text) {
    std::string escaped = Dump(Json(text));  // with quotes
    escaped = escaped.substr(1, escaped.size() - 2);
    return sweep_file.find(text) != sweep_file.npos || sweep_file.find(escaped) != sweep_file.npos;
  };
  return names("code") && (required.path == "." || names(required.path)) &&
         std::ranges::all_of(required.include, names);
}

Result<SentCode> SendCode(HttpClient& client, const rest::RequiredCode& required,
                          const fs::path& directory) {
  std::error_code unknown;
  fs::path folder = fs::canonical(directory / required.path, unknown);
  if (unknown) folder = directory / required.path;  // Collect() explains it
  SystemCommands commands;
  Result<code::Collected> collected =
      code::Collect(folder,
                    {.include = required.include,
                     .exclude = required.exclude,
                     .bytes_max = static_cast<uint64_t>(required.bytes_max)},
                    commands);
  if (!collected.ok()) return collected.error();
  SentCode code{.digest = code::DigestOf(code::ToText(collected->manifest)),
                .collected = *std::move(collected)};
  if (Status sent = Upload(client, folder, code).Run(); !sent.ok()) return sent.error();
  return code;
}

}  // namespace attune::cli
