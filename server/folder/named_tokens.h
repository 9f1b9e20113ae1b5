#pragma once

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
  kExecutor,  // may join as an executor, and nothing else
};

std::string_view ToString(Role role);

// The token in the file `join` of the data folder, with which executors join by default.
inline constexpr std::string_view kJoinToken = "join";

// A client that shows the secret acts in this name.
struct NamedToken {
  std::string name;
  Role role = Role::kViewer;
  std::string sha256;  // of the secret, which nobody keeps
};

// The tokens of a server beside its own, each a file in DATA-DIR/tokens. Other processes may make
// and remove them while the server runs. Any thread.
class NamedTokens {
 public:
  explicit NamedTokens(const std::filesystem::path& data_dir);

  // A new one's secret, which is told this once. kInvalid for a name that is none, kConflict when
  // it has a token, kDenied or kStorageFull when it cannot be written.
  Result<std::string> Create(const std::string& name, Role role) const;

  // From now on its secret opens nothing. kNotFound when there is none.
  Status Remove(const std::string& name) const;

  // Gives a token another secret, and returns it. The errors of Create, and kNotFound.
  Result<std::string> Rotate(const std::string& name) const;

  // Returns all tokens, sorted by name. Skips files that hold no token or that this user may
  // not read, with a line in the log. Returns an error if the folder or another file cannot be
  // read.
  Result<std::vector<NamedToken>> List() const;

  // Returns the token with this secret. Reads the folder again if it has changed. Returns an error
  // if the folder cannot be read and the tokens that were read last do not hold this one.
  Result<std::optional<NamedToken>> Find(std::string_view secret) const;

  // The same for a token of which only the digest is known.
  Result<std::optional<NamedToken>> FindDigest(const std::string& digest) const;

 private:
  Result<std::string> Write(const std::string& name, Role role) const;

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  mutable std::optional<std::filesystem::file_time_type>
      read_;                               // the folder's time; empty: read again
  mutable std::vector<NamedToken> known_;  // as read last without an error
};

}  // namespace attune::server
