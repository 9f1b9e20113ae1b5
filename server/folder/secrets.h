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

inline constexpr size_t kSecretBytesMax = 16 * 1024;  // of one value
// replaced or removed values that are still masked
inline constexpr size_t kFormerValuesMax = 1000;

// The secrets that programs of sweeps get as environment variables. They are in
// DATA-DIR/secrets.json, which only the owner of the folder can read. The database and its backups
// do not contain them.
//
// The file also keeps replaced and removed values, because logs may still contain them. They are
// only masked, and the oldest are forgotten first.
//
// Other processes may change the file while the server runs. Any thread.
class Secrets {
 public:
  explicit Secrets(const std::filesystem::path& data_dir);

  // Creates or replaces a secret. Creates the data folder if it is absent. kInvalid: the value
  // cannot be an environment variable. kConflict: another process is changing the file. Other
  // errors: see SystemError. REQUIRES: IsSecretName(name) (core/log/secret_names.h).
  Status Set(const std::string& name, const std::string& value) const;

  // Removes a secret. With `forget`, its values are no longer masked. kNotFound if there is none.
  Status Remove(const std::string& name, bool forget) const;

  // The names of all secrets, sorted.
  Result<std::vector<std::string>> Names() const;

  // The value of a secret; nullopt if there is none.
  Result<std::optional<std::string>> Find(const std::string& name) const;

  // Masks all current, replaced and removed values.
  Result<std::shared_ptr<const SecretMask>> Mask() const;

 private:
  struct Contents {
    std::map<std::string, std::string> values;
    std::vector<std::pair<std::string, std::string>> former;  // names and values, oldest first
    SecretMask mask;
  };

  // The newest contents. If the file cannot be read now, the contents of the last read.
  Result<std::shared_ptr<const Contents>> Read() const;
  Result<Contents> ReadFile() const;
  Status Edit(const std::function<Status(Contents&)>& change) const;

  const std::filesystem::path folder_;
  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Contents> known_;  // the contents of the last read; null: none yet
  mutable std::optional<std::filesystem::file_time_type>
      read_;  // the file's timestamp at the last read; nullopt: read again
};

}  // namespace attune::server
