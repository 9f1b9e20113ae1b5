#include "server/folder/named_tokens.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/parse_number.h"
#include "base/result.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/private_files.h"
#include "system/random_word.h"
#include "system/secret.h"
#include "system/sha256.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameBytesMax = 64;
// the coarsest resolution of a file system's timestamps
constexpr std::chrono::seconds kCoarseTime{2};
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
// Actors with a fixed meaning: the server's own token, and events without a client
// (core/log/event.h).
constexpr std::array<std::string_view, 2> kReserved = {"admin", "attune"};

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name.front() != '.' &&
         name.find_first_not_of(kNameCharacters) == name.npos &&
         std::ranges::find(kReserved, name) == kReserved.end();
}

// Reads `ROLE DIGEST`, or `ROLE DIGEST EXPIRES` with a time in seconds since 1970.
std::optional<NamedToken> Parse(const std::string& name, const std::string& text) {
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  const std::string rest = text.substr(blank + 1);
  const size_t second = rest.find(' ');
  NamedToken token{.name = name, .sha256 = rest.substr(0, second)};
  if (token.sha256.size() != 64) return std::nullopt;
  if (second != rest.npos) {
    const auto seconds = ParseNumber<int64_t>(std::string_view(rest).substr(second + 1));
    if (!seconds) return std::nullopt;
    token.expires = std::chrono::sys_seconds(std::chrono::seconds(*seconds));
  }
  for (const Role role : {Role::kAdmin, Role::kViewer, Role::kExecutor}) {
    token.role = role;
    if (text.substr(0, blank) == ToString(role)) return token;
  }
  return std::nullopt;
}

std::optional<fs::file_time_type> TokensModifiedAt(const fs::path& folder) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(folder, error);
  return error ? std::nullopt : std::optional(time);
}

}  // namespace

std::string_view ToString(Role role) {
  switch (role) {
    case Role::kAdmin:
      return "admin";
    case Role::kViewer:
      return "viewer";
    case Role::kExecutor:
      return "executor";
  }
  return "";
}

NamedTokens::NamedTokens(const fs::path& data_dir) : folder_(data_dir / "tokens") {}

Result<std::string> NamedTokens::Create(const std::string& name, Role role,
                                        std::optional<std::chrono::sys_seconds> expires) const {
  if (!IsName(name))
    return Error{ErrorCode::kInvalid,
                 "`" + name + "` is not a valid name of a token; use at most " +
                     std::to_string(kNameBytesMax) +
                     " characters of a to z, 0 to 9, `-`, `_` and `.`, without a dot at the "
                     "beginning (`admin` and `attune` are reserved)"};
  std::error_code error;
  fs::create_directory(folder_, error);
  if (!error) fs::permissions(folder_, fs::perms::owner_all, error);
  if (error) return SystemError("cannot create " + folder_.string(), error.value());
  if (fs::exists(folder_ / name, error))
    return Error{
        ErrorCode::kConflict,
        name + " already has a token; remove it first with `attune token rm " + name + "`"};
  return Write(name, role, expires);
}

Result<std::string> NamedTokens::Write(const std::string& name, Role role,
                                       std::optional<std::chrono::sys_seconds> expires) const {
  const std::string secret = RandomWord();
  std::string text = std::string(ToString(role)) + ' ' + Sha256::HexOf(secret);
  if (expires) text += ' ' + std::to_string(expires->time_since_epoch().count());
  const Status written = WriteWhole(folder_ / name, text + '\n', kPrivate);
  if (!written.ok()) return written.error();
  for (const fs::path& path : {folder_, folder_ / name}) {
    const Status given = GiveToOwner(folder_.parent_path(), path);
    if (!given.ok()) logging::Warn("{}", given.error().message);
  }
  return secret;
}

Result<std::string> NamedTokens::Rotate(const std::string& name) const {
  const auto tokens = List();
  if (!tokens.ok()) return tokens.error();
  const auto found = std::ranges::find(*tokens, name, &NamedToken::name);
  if (found == tokens->end())
    return Error{ErrorCode::kNotFound,
                 "there is no token of `" + name + "`; list them with `attune token list`"};
  return Write(name, found->role, found->expires);
}

Status NamedTokens::Remove(const std::string& name) const {
  if (IsName(name) && unlink((folder_ / name).c_str()) == 0) return {};
  if (IsName(name) && errno != ENOENT)
    return SystemError("cannot remove the token of " + name, errno);
  return Error{ErrorCode::kNotFound,
               "there is no token of `" + name + "`; list them with `attune token list`"};
}

Result<std::vector<NamedToken>> NamedTokens::List() const {
  std::vector<NamedToken> tokens;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!IsName(name)) continue;
    const Result<std::string> text = ReadWord(entry->path());
    if (!text.ok() && text.error().code != ErrorCode::kDenied) return text.error();
    if (auto token = text.ok() ? Parse(name, *text) : std::nullopt) {
      tokens.push_back(*std::move(token));
    } else {
      logging::Warn("the token file {} is skipped: {}", entry->path().string(),
                    text.ok() ? "it has no valid token" : text.error().message);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return SystemError("cannot read the tokens in " + folder_.string(), error.value());
  std::ranges::sort(tokens, {}, &NamedToken::name);
  return tokens;
}

Result<std::optional<NamedToken>> NamedTokens::Find(std::string_view secret) const {
  return FindDigest(Sha256::HexOf(secret));
}

Result<std::optional<NamedToken>> NamedTokens::FindDigest(const std::string& digest) const {
  const std::lock_guard lock(mutex_);
  Status read;
  const auto change = TokensModifiedAt(folder_);
  if (!change || change != read_) {
    // Timestamps are coarse. Only an older one proves that nothing has changed since.
    const bool is_settled = change && *change + kCoarseTime < fs::file_time_type::clock::now();
    read_.reset();
    if (auto listed = List(); listed.ok()) {
      known_ = *std::move(listed);
      if (is_settled) read_ = change;
    } else {
      read = listed.error();
    }
  }
  for (const NamedToken& token : known_)
    if (SecretsMatch(digest, token.sha256) && !token.HasExpired()) return std::optional(token);
  if (!read.ok()) return read.error();
  return std::optional<NamedToken>();
}

}  // namespace attune::server
