#include "server/storage/retention.h"

#include <algorithm>
#include <string_view>

#include "checkpoints/manifest.h"
#include "core/log/stored_path.h"

namespace attune::server {
namespace {

// The trial's number, as text: the first name of the folder.
std::string_view TrialOf(std::string_view folder) { return folder.substr(0, folder.find('/')); }

// Wanted copies that are not stored.
struct Missing {
  void Add(const WantedCopy& copy, const std::string& folder) {
    trials.insert(std::string(TrialOf(folder)));
    best = best || copy.best;
  }
  // Whether one of them would replace this copy.
  bool WouldReplace(const std::string& folder) const {
    return best || trials.contains(std::string(TrialOf(folder)));
  }

  std::set<std::string> trials;
  bool best = false;
};

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
  Missing waiting;  // wanted copies that may be stored later
  Missing missing;  // all wanted copies that are not stored
  for (const WantedCopy& copy : input.wanted.copies) {
    const std::string folder = CopyFolder(copy.id, copy.digest);
    wanted.insert(folder);
    if (copy.stored == input.wanted.address) continue;
    missing.Add(copy, folder);
    if (input.obtainable.contains(copy.id)) waiting.Add(copy, folder);
  }

  RetentionPlan plan;
  std::set<std::string> recorded;
  for (const RecordedCopy& copy : input.recorded) recorded.insert(CopyFolder(copy.id, copy.digest));
  // While a better copy is missing, those that the log has may be the only ones that are left.
  const auto is_superseded = [&](const std::string& folder) {
    return !wanted.contains(folder) &&
           !(recorded.contains(folder) ? missing : waiting).WouldReplace(folder);
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
