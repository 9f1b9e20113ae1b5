#include "server/storage/stored_sweeps.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include "core/log/stored_path.h"
#include "json/parse.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kHexadecimal = 16;

// Parses the result of StoredSweepName().
std::optional<std::pair<SweepId, LogIdentity>> ParseName(std::string_view name) {
  const size_t dash = name.find('-');
  if (dash == name.npos) return std::nullopt;
  const auto sweep = ParseSweepId(name.substr(0, dash));
  uint64_t identity = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + dash + 1, end, identity, kHexadecimal);
  if (!sweep.ok() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return std::pair(*sweep, LogIdentity(identity));
}

std::string ToText(const StoredSweep& stored) {
  return json{{"address", stored.address},
              {"code", stored.code},
              {"results_of", stored.results_of},
              {"cleaned_of", stored.cleaned_of}}
             .dump(2) +
         '\n';
}

Result<StoredSweep> ReadFile(const fs::path& path, SweepId sweep, LogIdentity identity) {
  const Result<std::string> text = ReadWhole(path);
  if (!text.ok()) return text.error();
  StoredSweep stored{.sweep = sweep, .identity = identity};
  try {
    const json file = ParseJsonOrThrow<json>(*text);
    file.at("address").get_to(stored.address);
    file.at("code").get_to(stored.code);
    file.at("results_of").get_to(stored.results_of);
    file.at("cleaned_of").get_to(stored.cleaned_of);
  } catch (const json::exception& error) {
    return Error{ErrorCode::kCorrupt, error.what()};
  }
  return stored;
}

}  // namespace

StoredSweeps::StoredSweeps(fs::path folder) : folder_(std::move(folder)) {
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder_, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const auto key = ParseName(entry->path().filename().string());
    if (!key) continue;
    Result<StoredSweep> stored = ReadFile(entry->path(), key->first, key->second);
    if (stored.ok()) {
      sweeps_.emplace(*key, *std::move(stored));
    } else {
      logging::Warn("{} cannot be read, so files of {} in an object store may stay: {}",
                    entry->path().string(), ToString(key->first), stored.error().message);
    }
  }
}

fs::path StoredSweeps::FileOf(const Key& key) const {
  return folder_ / StoredSweepName(key.second, key.first);
}

std::vector<StoredSweep> StoredSweeps::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoredSweep> all;
  for (const auto& [key, stored] : sweeps_) all.push_back(stored);
  return all;
}

std::optional<StoredSweep> StoredSweeps::Find(SweepId sweep, LogIdentity identity) const {
  const std::lock_guard lock(mutex_);
  const auto found = sweeps_.find({sweep, identity});
  if (found == sweeps_.end()) return std::nullopt;
  return found->second;
}

Status StoredSweeps::Update(SweepId sweep, LogIdentity identity,
                            const std::function<void(StoredSweep&)>& change) {
  const Key key(sweep, identity);
  const std::lock_guard lock(mutex_);
  const auto known = sweeps_.find(key);
  StoredSweep changed =
      known == sweeps_.end() ? StoredSweep{.sweep = sweep, .identity = identity} : known->second;
  change(changed);
  if (known != sweeps_.end() && known->second == changed) return {};
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return SystemError("cannot create " + folder_.string(), failed.value());
  if (Status written = WriteWhole(FileOf(key), ToText(changed), kPrivate); !written.ok())
    return written;
  sweeps_[key] = std::move(changed);
  return {};
}

Status StoredSweeps::Remove(SweepId sweep, LogIdentity identity) {
  const Key key(sweep, identity);
  const std::lock_guard lock(mutex_);
  std::error_code failed;
  fs::remove(FileOf(key), failed);
  if (failed) return SystemError("cannot delete " + FileOf(key).string(), failed.value());
  sweeps_.erase(key);
  return {};
}

}  // namespace attune::server
