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
  kAdmin,   // may do everything
  kViewer,  // may look
};

std::string_view ToString(Role role);

// Whoever has the secret acts in that name.
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

  // All of them, by name. Files that hold no token are passed over, and said in the log.
  std::vector<NamedToken> List() const;

  // The token whose secret this is. Looks into the folder again when it has changed.
  std::optional<NamedToken> Find(std::string_view secret) const;

 private:
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  mutable std::optional<std::filesystem::file_time_type> read_;
  mutable std::vector<NamedToken> known_;
};

}  // namespace attune::server
