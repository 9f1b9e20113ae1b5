#include "server/checkpoint_storage.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "checkpoints/manifest.h"
#include "checkpoints/removal.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr char kOwnerFile[] = "attune-storage";

Error StorageOptionError(const Error& error) {
  return {error.code, "--storage-path: " + error.message};
}

template <typename T>
std::optional<T> ParseInteger(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses a folder name such as 2-900, which is attempt 2 and step 900.
std::optional<CheckpointId> ParseName(const TrialId& trial, const std::string& name) {
  const size_t dash = name.find('-');
  if (dash == name.npos) return std::nullopt;
  const auto attempt = ParseInteger<uint32_t>(std::string_view(name).substr(0, dash));
  const auto step = ParseInteger<int64_t>(std::string_view(name).substr(dash + 1));
  if (!attempt || !step) return std::nullopt;
  return CheckpointId{trial, *attempt, Step(*step)};
}

// Returns false if it could not delete the folder.
bool RemoveFolder(const fs::path& folder) {
  const std::error_code failed = checkpoints::RemoveFolder(folder);
  if (failed) logging::Warn("cannot delete {}: {}", folder.string(), failed.message());
  return !failed;
}

}  // namespace

Result<CheckpointStorage> CheckpointStorage::Open(const fs::path& path, const std::string& owner) {
  const fs::path folder = fs::absolute(path);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return StorageOptionError(SystemError("cannot write " + folder.string(), failed.value()));
  const fs::path mark = folder / kOwnerFile;
  const auto known = ReadWord(mark);
  if (!known.ok()) return StorageOptionError(known.error());
  if (!known->empty() && *known != owner)
    return StorageOptionError(
        {ErrorCode::kConflict,
         folder.string() +
             " holds checkpoints of another server; give each server a separate folder"});
  if (known->empty()) {
    if (Status marked = WriteWhole(mark, owner + "\n", kPrivate); !marked.ok())
      return StorageOptionError(marked.error());
  }
  return CheckpointStorage(folder);
}

fs::path CheckpointStorage::FolderOf(const CheckpointId& id) const {
  return path_ / ToString(id.trial.sweep) / std::to_string(id.trial.number.value) /
         (std::to_string(id.attempt) + "-" + std::to_string(id.step.value));
}

bool CheckpointStorage::Has(const CheckpointId& id, const std::string& digest) const {
  const Result<std::string> manifest = ReadWhole(FolderOf(id) / checkpoints::kManifestFile);
  return manifest.ok() && !manifest->empty() && checkpoints::DigestOf(*manifest) == digest;
}

// Calls `visit` with each trial and each entry of its folder.
template <typename Visit>
void CheckpointStorage::ForEachEntry(SweepId sweep, Visit visit) const {
  std::error_code failed;
  for (auto trial = fs::directory_iterator(path_ / ToString(sweep), failed);
       !failed && trial != fs::directory_iterator(); trial.increment(failed)) {
    const auto number = ParseInteger<uint32_t>(trial->path().filename().string());
    if (!number) continue;
    std::error_code gone;
    for (auto entry = fs::directory_iterator(trial->path(), gone);
         !gone && entry != fs::directory_iterator(); entry.increment(gone)) {
      visit(TrialId(sweep, TrialNumber(*number)), entry->path());
    }
  }
}

std::vector<CheckpointId> CheckpointStorage::ListCopies(SweepId sweep) const {
  std::vector<CheckpointId> all;
  ForEachEntry(sweep, [&](const TrialId& trial, const fs::path& path) {
    if (const auto id = ParseName(trial, path.filename().string())) all.push_back(*id);
  });
  return all;
}

void CheckpointStorage::RemoveUnfinished(SweepId sweep,
                                         const std::set<CheckpointId>& except) const {
  std::vector<fs::path> to_remove;
  ForEachEntry(sweep, [&](const TrialId& trial, const fs::path& path) {
    const std::string name = path.filename().string();
    // An unfinished copy is named .NAME.part-…
    const auto is_of = [&](const CheckpointId& id) {
      return id.trial == trial && name.starts_with("." + FolderOf(id).filename().string() + ".");
    };
    if (name.starts_with('.') && std::ranges::none_of(except, is_of)) to_remove.push_back(path);
  });
  std::error_code failed;
  for (const fs::path& path : to_remove) fs::remove_all(path, failed);
}

void CheckpointStorage::Remove(const CheckpointId& id) const {
  const fs::path folder = FolderOf(id);
  if (!RemoveFolder(folder)) return;
  std::error_code others;
  fs::remove(folder.parent_path(), others);  // the trial's folder, if it is empty now
}

bool CheckpointStorage::Remove(SweepId sweep) const {
  return RemoveFolder(path_ / ToString(sweep));
}

}  // namespace attune::server
