#include "server/folder/browser_sessions.h"

#include <unistd.h>

#include "system/files.h"
#include "system/random_word.h"
#include "system/sha256.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

bool IsOlder(const fs::path& file, FileClock::duration lifetime) {
  std::error_code failed;
  const auto written = fs::last_write_time(file, failed);
  return !failed && FileClock::now() - written > lifetime;
}

// Writes a file that is named by the digest of a new secret, and returns the secret.
Result<std::string> WriteSecret(const fs::path& folder, const std::string& text,
                                FileClock::duration lifetime) {
  std::error_code failed;
  fs::create_directory(folder, failed);
  if (!failed) fs::permissions(folder, fs::perms::owner_all, failed);
  if (failed) return SystemError("cannot create " + folder.string(), failed.value());
  for (fs::directory_iterator file(folder, failed), end; !failed && file != end;
       file.increment(failed))
    if (IsOlder(file->path(), lifetime)) unlink(file->path().c_str());
  const std::string secret = RandomWord();
  if (Status written = WriteWhole(folder / Sha256::HexOf(secret), text + "\n", kPrivate);
      !written.ok())
    return written.error();
  return secret;
}

}  // namespace

BrowserSessions::BrowserSessions(const fs::path& data_dir)
    : sessions_(data_dir / "sessions"), codes_(data_dir / "login-codes") {}

Result<std::string> BrowserSessions::Create(const BrowserSession& session) const {
  return WriteSecret(sessions_, session.token_name + " " + session.token_sha256, kSessionLifetime);
}

Result<std::optional<BrowserSession>> BrowserSessions::Find(std::string_view secret) const {
  const fs::path file = sessions_ / Sha256::HexOf(secret);
  const Result<std::string> text = ReadWord(file);
  if (!text.ok()) return text.error();
  const size_t space = text->find(' ');
  if (space == text->npos || IsOlder(file, kSessionLifetime))
    return std::optional<BrowserSession>();
  return std::optional(BrowserSession{.token_name = text->substr(0, space),
                                      .token_sha256 = text->substr(space + 1)});
}

void BrowserSessions::Remove(std::string_view secret) const {
  unlink((sessions_ / Sha256::HexOf(secret)).c_str());
}

Result<std::string> BrowserSessions::CreateCode() const {
  return WriteSecret(codes_, "admin", kCodeLifetime);
}

bool BrowserSessions::TakeCode(std::string_view code) const {
  const fs::path file = codes_ / Sha256::HexOf(code);
  const bool expired = IsOlder(file, kCodeLifetime);
  return unlink(file.c_str()) == 0 && !expired;
}

}  // namespace attune::server
