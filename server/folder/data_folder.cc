#include "server/folder/data_folder.h"

#include <unistd.h>

#include <utility>

#include "base/result.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/random_word.h"
#include "tls/join.h"

namespace attune::server {
namespace {

// Reads a word from a file of the folder. If the file is absent, writes a random word. `what`
// describes the word.
Result<std::string> ReadOrCreateWord(const std::filesystem::path& file, const std::string& what) {
  const auto known = ReadWord(file);
  if (!known.ok()) return known.error();
  const std::string word = known->empty() ? RandomWord() : *known;
  if (known->empty()) {
    if (Status written = WriteWhole(file, word + "\n", kPrivate); !written.ok())
      return written.error();
  }
  const auto join = tls::ParseJoin(word);
  if (join && join->token == word) return word;
  return Error{
      ErrorCode::kInvalid,
      file.string() + " has no valid " + what +
          "; write one word of printable ASCII to it, or remove the file to get a new one"};
}

std::string DescribeHolder(const std::filesystem::path& folder) {
  const Result<ServerAddress> running = AskServer(folder);
  if (!running.ok()) return "";
  return " (process " + std::to_string(running->pid) + ", " + running->http + ")";
}

}  // namespace

Result<DataFolder> DataFolder::Open(const std::filesystem::path& given) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(given, error).lexically_normal();
  std::filesystem::create_directories(path, error);
  if (error)
    return Error{
        error == std::errc::no_space_on_device ? ErrorCode::kStorageFull : ErrorCode::kDenied,
        "cannot create the data folder " + path.string() + ": " + error.message() +
            "; choose another with --data-dir"};
  Result<UniqueFd> lock = LockFile(path / "lock", kPrivate);
  if (!lock.ok() && lock.error().code == ErrorCode::kConflict)
    return Error{ErrorCode::kConflict,
                 "the data folder " + path.string() + " is in use by another server" +
                     DescribeHolder(path) +
                     "; stop that server, or choose another folder with --data-dir"};
  if (!lock.ok()) return lock.error();
  DataFolder folder(path, *std::move(lock));
  auto token = ReadOrCreateWord(path / "token", "token");
  if (!token.ok()) return token.error();
  folder.token_ = std::move(token).value();
  std::error_code ignored;
  auto id = ReadOrCreateWord(path / "server-id", "id of the server");
  if (!id.ok()) return id.error();
  folder.id_ = std::move(id).value();
  if (!std::filesystem::exists(folder.database(), ignored) &&
      std::filesystem::exists(path / "sweeps", ignored))
    logging::Warn("{} has no database, so a new one is created; the earlier state of {} is lost",
                  path.string(), (path / "sweeps").string());
  return folder;
}

void DataFolder::Announce(const std::string& http_url, const std::string& rpc_target) {
  auto opened = ServerSocket::Open(path_, {.pid = getpid(), .http = http_url, .rpc = rpc_target});
  if (opened.ok()) {
    socket_ = *std::move(opened);
  } else {
    logging::Warn("{}; commands need --server {} and --token-file {}", opened.error().message,
                  http_url, (path_ / "token").string());
  }
}

Result<tls::Identity> DataFolder::Identity() const {
  const std::filesystem::path file = path_ / "tls.pem";
  if (std::filesystem::exists(file)) {
    const Result<std::string> pem = ReadWhole(file);
    if (auto identity = tls::ParsePem(pem.ok() ? *pem : "")) return *std::move(identity);
    return Error{ErrorCode::kCorrupt,
                 file.string() +
                     " cannot be read, or has no certificate with its key; restore the file, or "
                     "delete it and start every executor again with the new file `join`"};
  }
  const auto made = tls::MakeIdentity();
  if (!made) return Error{ErrorCode::kInternal, "OpenSSL cannot create a certificate"};
  if (Status written = WriteWhole(file, tls::ToPem(*made), kPrivate); !written.ok())
    return written.error();
  return *made;
}

Result<std::string> DataFolder::JoinWord(const NamedTokens& tokens,
                                         const std::string& fingerprint) const {
  const std::filesystem::path file = path_ / "join";
  const Result<std::string> text = ReadWord(file);
  if (!text.ok()) return text.error();
  tls::Join join = tls::ParseJoin(*text).value_or(tls::Join());
  const auto known = tokens.Find(join.token);
  if (!known.ok()) return known.error();
  if (!*known || (*known)->name != kJoinToken) {
    const Status removed = tokens.Remove(std::string(kJoinToken));
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed.error();
    auto made = tokens.Create(std::string(kJoinToken), Role::kExecutor);
    if (!made.ok()) return made.error();
    join.token = *std::move(made);
  }
  join.fingerprint = fingerprint;
  const std::string word = tls::ToText(join);
  if (Status written = WriteWhole(file, word + "\n", kPrivate); !written.ok())
    return written.error();
  return word;
}

}  // namespace attune::server
