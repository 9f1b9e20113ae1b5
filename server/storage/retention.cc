#include "server/storage/retention.h"

#include <algorithm>
#include <string_view>

#include "checkpoints/manifest.h"
#include "core/log/stored_path.h"

namespace attune::server {
namespace {

// The trial's number, as text: the first name of the folder.
std::string_view TrialOf(std::string_view folder) { return folder.substr(0, folder.find('/')); }

}  // namespace

std::string CopyFolder(const CheckpointId& id, const std::string& digest) {
  const LogIdentity any;
  return StoredPath(any, id, digest).substr(StoredCheckpoints(any, id.trial.sweep).size() + 1);
}

void AddListing(const object_storage::StoredFiles& files, RetentionInput& input) {
  for (const auto& [name, bytes] : files) {
    const size_t trial_end = name.find('/');
    if (trial_end == name.npos) continue;
    const size_t folder_end = name.find('/', trial_end + 1);
    if (folder_end == name.npos) continue;
    const std::string folder = name.substr(0, folder_end);
    input.folders.insert(folder);
    if (std::string_view(name).substr(folder_end + 1) == checkpoints::kManifestFile)
      input.complete.insert(folder);
  }
}

RetentionPlan PlanRetention(const RetentionInput& input) {
  std::set<std::string> wanted;
  std::set<std::string> waiting;  // trials with a wanted copy that is not stored yet
  bool best_waits = false;
  for (const WantedCopy& copy : input.wanted.copies) {
    const std::string folder = CopyFolder(copy.id, copy.digest);
    wanted.insert(folder);
    if (copy.stored == input.wanted.address || !input.obtainable.contains(copy.id)) continue;
    waiting.insert(std::string(TrialOf(folder)));
    best_waits = best_waits || copy.best;
  }

  RetentionPlan plan;
  const auto is_superseded = [&](const std::string& folder) {
    return !wanted.contains(folder) && !best_waits &&
           !waiting.contains(std::string(TrialOf(folder)));
  };
  for (const RecordedCopy& copy : input.recorded) {
    const std::string folder = CopyFolder(copy.id, copy.digest);
    const bool is_missing =
        input.recorded_before.contains(copy) && !input.complete.contains(folder);
    if (is_missing || is_superseded(folder)) plan.to_forget.push_back(copy);
  }
  std::ranges::copy_if(input.folders, std::back_inserter(plan.to_delete), is_superseded);
  return plan;
}

}  // namespace attune::server
