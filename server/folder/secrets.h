#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/folder/secret_mask.h"

namespace attune::server {

inline constexpr size_t kSecretBytesMax = 16 * 1024;  // of a value
inline constexpr size_t kFormerValuesMax = 1000;      // that are still masked

// The secrets that programs of sweeps get as environment variables, in DATA-DIR/secrets.json. Only
// the owner of the folder can read the file. It is no part of the database and its backups.
//
// The file also keeps the values that were replaced or removed, because logs may still contain
// them. They are only masked, and the oldest are forgotten first.
//
// Other processes may change the file while the server runs. Any thread.
class Secrets {
 public:
  explicit Secrets(const std::filesystem::path& data_dir);

  // Creates or replaces a secret, and creates the data folder if it is absent. kInvalid for a value
  // that cannot be an environment variable, kConflict while another process changes the file,
  // errors of SystemError. REQUIRES: IsSecretName(name) (core/log/secret_names.h).
  Status Set(const std::string& name, const std::string& value) const;

  // Removes a secret; `forget`: its values are no longer masked either. kNotFound if there is none.
  Status Remove(const std::string& name, bool forget) const;

  // The names of all secrets, sorted.
  Result<std::vector<std::string>> Names() const;

  // The value of a secret; nullopt if there is none.
  Result<std::optional<std::string>> Find(const std::string& name) const;

  // Masks all values, those of before as well.
  Result<std::shared_ptr<const SecretMask>> Mask() const;

 private:
  struct Contents {
    std::map<std::string, std::string> values;
    std::vector<std::pair<std::string, std::string>> former;  // names and values, oldest first
    SecretMask mask;
  };

  // The newest contents. If the file cannot be read now, those that were read last.
  Result<std::shared_ptr<const Contents>> Read() const;
  Result<Contents> ReadFile() const;
  Status Edit(const std::function<Status(Contents&)>& change) const;

  const std::filesystem::path folder_;
  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Contents> known_;  // as read last; null: never
  mutable std::optional<std::filesystem::file_time_type>
      read_;  // the file's time; empty: read again
};

}  // namespace attune::server
