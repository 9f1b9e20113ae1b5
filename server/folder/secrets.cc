#include "server/folder/secrets.h"

#include <chrono>

#include "json/parse.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/private_files.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// the coarsest resolution of a file system's timestamps
constexpr std::chrono::seconds kTimeStep{2};

std::optional<fs::file_time_type> SecretsModifiedAt(const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  return error ? std::nullopt : std::optional(time);
}

// The contents as the file's text; kInvalid if a value is not UTF-8.
Result<std::string> ToText(const json& contents) {
  try {
    return contents.dump(2) + '\n';
  } catch (const json::exception&) {
    return Error{ErrorCode::kInvalid,
                 "the value is not UTF-8 text; encode it, for example as base64"};
  }
}

Status CheckValue(const std::string& value) {
  if (value.empty())
    return Error{ErrorCode::kInvalid, "the value is empty; pass it through standard input"};
  if (value.size() > kSecretBytesMax)
    return Error{ErrorCode::kInvalid,
                 "the value has more than " + std::to_string(kSecretBytesMax) +
                     " bytes; put it into a file and give the file's path in env"};
  if (value.find('\0') != value.npos)
    return Error{ErrorCode::kInvalid,
                 "the value has a zero byte, which an environment variable cannot hold; encode it, "
                 "for example as base64"};
  return {};
}

Error NoSuchSecret(const std::string& name) {
  return {ErrorCode::kNotFound,
          "there is no secret " + name + "; `attune secret list` lists the existing ones"};
}

}  // namespace

Secrets::Secrets(const fs::path& data_dir) : folder_(data_dir), file_(data_dir / "secrets.json") {}

Status Secrets::Set(const std::string& name, const std::string& value) const {
  if (Status fit = CheckValue(value); !fit.ok()) return fit;
  std::error_code error;
  if (fs::create_directories(folder_, error) && !error)
    fs::permissions(folder_, fs::perms::owner_all, error);
  if (error) return SystemError("cannot create the data folder " + folder_.string(), error.value());
  return Edit([&](Contents& contents) -> Status {
    std::string& current = contents.values[name];
    if (!current.empty() && current != value) contents.former.emplace_back(name, current);
    current = value;
    return {};
  });
}

Status Secrets::Remove(const std::string& name, bool forget) const {
  return Edit([&](Contents& contents) -> Status {
    const auto found = contents.values.find(name);
    const auto is_of_name = [&](const auto& former) { return former.first == name; };
    if (forget) {
      const size_t forgotten = std::erase_if(contents.former, is_of_name);
      if (found == contents.values.end() && forgotten == 0) return NoSuchSecret(name);
    } else {
      if (found == contents.values.end()) return NoSuchSecret(name);
      contents.former.emplace_back(name, found->second);
    }
    contents.values.erase(name);
    return {};
  });
}

Result<std::vector<std::string>> Secrets::Names() const {
  const auto contents = Read();
  if (!contents.ok()) return contents.error();
  std::vector<std::string> names;
  for (const auto& [name, value] : (*contents)->values) names.push_back(name);
  return names;
}

Result<std::optional<std::string>> Secrets::Find(const std::string& name) const {
  const auto contents = Read();
  if (!contents.ok()) return contents.error();
  const auto found = (*contents)->values.find(name);
  if (found == (*contents)->values.end()) return std::optional<std::string>();
  return std::optional(found->second);
}

Result<std::shared_ptr<const SecretMask>> Secrets::Mask() const {
  const auto contents = Read();
  if (!contents.ok()) return contents.error();
  return std::shared_ptr<const SecretMask>(*contents, &(*contents)->mask);
}

Result<std::shared_ptr<const Secrets::Contents>> Secrets::Read() const {
  const std::lock_guard lock(mutex_);
  const auto time = SecretsModifiedAt(file_);
  if (known_ && time && time == read_) return known_;
  // Timestamps are coarse. The file may change once more without a new timestamp.
  const bool is_old = time && *time + kTimeStep < fs::file_time_type::clock::now();
  read_.reset();
  auto contents = ReadFile();
  if (!contents.ok()) {
    if (!known_) return contents.error();
    logging::Warn("{}; the server keeps using the secrets that it read before",
                  contents.error().message);
    return known_;
  }
  known_ = std::make_shared<const Contents>(*std::move(contents));
  if (is_old) read_ = time;
  return known_;
}

Result<Secrets::Contents> Secrets::ReadFile() const {
  const Result<std::string> text = ReadWhole(file_);
  if (!text.ok()) return text.error();
  Contents contents;
  if (text->empty()) return contents;
  std::vector<std::string> masked;
  try {
    const json file = ParseJsonOrThrow<json>(*text);
    file.at("secrets").get_to(contents.values);
    file.at("former").get_to(contents.former);
  } catch (const json::exception&) {
    return Error{ErrorCode::kCorrupt,
                 file_.string() + " is damaged; delete it, and set the secrets again"};
  }
  for (const auto& [name, value] : contents.values) masked.push_back(value);
  for (const auto& [name, value] : contents.former) masked.push_back(value);
  contents.mask = SecretMask(masked);
  return contents;
}

Status Secrets::Edit(const std::function<Status(Contents&)>& change) const {
  const Result<UniqueFd> lock = LockFile(folder_ / "secrets.lock", kPrivate);
  if (!lock.ok() && lock.error().code == ErrorCode::kConflict)
    return Error{ErrorCode::kConflict, "another process is changing the secrets; try again"};
  if (!lock.ok()) return lock.error();
  auto contents = ReadFile();
  if (!contents.ok()) return contents.error();
  if (Status changed = change(*contents); !changed.ok()) return changed;
  auto& former = contents->former;
  if (former.size() > kFormerValuesMax) former.erase(former.begin());
  const auto text = ToText({{"secrets", contents->values}, {"former", former}});
  if (!text.ok()) return text.error();
  if (Status written = WriteWhole(file_, *text, kPrivate); !written.ok()) return written;
  return GiveToOwner(folder_, file_);
}

}  // namespace attune::server
