#pragma once

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace attune::server {

enum class Role {
  kAdmin,     // may do everything
  kViewer,    // may read everything and change nothing
  kExecutor,  // may only join as an executor
};

std::string_view ToString(Role role);

// The name of the token with which executors join by default. It is in the file `join` of the data
// folder.
inline constexpr std::string_view kJoinToken = "join";

// The longest time until a token expires: ten years.
inline constexpr std::chrono::seconds kTokenLifeMax = std::chrono::days(3650);

// A client that shows the secret acts under this name.
struct NamedToken {
  std::string name;
  Role role = Role::kViewer;
  std::string sha256;  // digest of the secret, which is not stored
  std::optional<std::chrono::sys_seconds> expires = {};  // nullopt: never

  bool HasExpired() const { return expires && *expires <= std::chrono::system_clock::now(); }
};

// The server's tokens in addition to its own, each a file in DATA-DIR/tokens. Other processes may
// create and remove them while the server runs. Any thread.
class NamedTokens {
 public:
  explicit NamedTokens(const std::filesystem::path& data_dir);

  // Creates a token and returns its secret, which is shown only now. kInvalid: the name is not
  // allowed. kConflict: the name has a token. kDenied, kStorageFull: the token cannot be written.
  Result<std::string> Create(const std::string& name, Role role,
                             std::optional<std::chrono::sys_seconds> expires = {}) const;

  // Revokes a token. kNotFound if there is none.
  Status Remove(const std::string& name) const;

  // Gives a token a new secret and returns it. Errors: those of Create, and kNotFound.
  Result<std::string> Rotate(const std::string& name) const;

  // Returns all tokens, also expired ones, sorted by name. Files that hold no token or that this
  // user may not read are skipped with a warning. Returns an error if the folder or another file
  // cannot be read.
  Result<std::vector<NamedToken>> List() const;

  // Returns the token with this secret, unless it has expired. Reads the folder again if it has
  // changed. If it cannot be read, searches the tokens of the last read, and returns an error if
  // none matches.
  Result<std::optional<NamedToken>> Find(std::string_view secret) const;

  // Like Find, for the digest of a secret.
  Result<std::optional<NamedToken>> FindDigest(const std::string& digest) const;

 private:
  Result<std::string> Write(const std::string& name, Role role,
                            std::optional<std::chrono::sys_seconds> expires) const;

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  mutable std::optional<std::filesystem::file_time_type>
      read_;  // the folder's timestamp at the last read; nullopt: read again
  mutable std::vector<NamedToken> known_;  // the result of the last successful read
};

}  // namespace attune::server
