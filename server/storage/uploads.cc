#include "server/storage/uploads.h"

#include <algorithm>

#include "core/log/stored_path.h"
#include "core/state/state.h"
#include "server/rpc/convert.h"
#include "server/rpc/desired.h"

namespace attune::server {

const Uploader* ChooseUploader(const WantedCopy& copy, const std::vector<Uploader>& uploaders) {
  const std::string& folder = FolderOf(copy.executor, copy.folder);
  const Uploader* chosen = nullptr;
  for (const Uploader& uploader : uploaders) {
    if (uploader.folder != folder) continue;
    if (uploader.name == copy.executor) return &uploader;
    if (chosen == nullptr) chosen = &uploader;
  }
  return chosen;
}

std::map<std::string, v1::Uploads> AssignUploads(const std::map<SweepId, WantedCopies>& sweeps,
                                                 const std::vector<Uploader>& uploaders,
                                                 const Variables& variables,
                                                 uint64_t bytes_per_second_max) {
  std::map<std::string, v1::Uploads> lists;
  for (const bool best : {true, false}) {
    for (const auto& [sweep, wanted] : sweeps) {
      for (const WantedCopy& copy : wanted.copies) {
        if (copy.best != best || copy.stored == wanted.address) continue;
        const Uploader* const uploader = ChooseUploader(copy, uploaders);
        if (uploader == nullptr) continue;
        const std::string path = StoredPath(wanted.identity, copy.id, copy.digest);
        if (uploader->skipped.contains(path)) continue;
        v1::Uploads& list = lists[uploader->name];
        if (static_cast<size_t>(list.uploads_size()) >= kUploadsMax) continue;
        v1::Upload& upload = *list.add_uploads();
        *upload.mutable_checkpoint() = ToProto(copy.id);
        upload.set_path(copy.path);
        upload.set_digest(copy.digest);
        upload.set_address(wanted.address);
        upload.set_stored(path);
      }
    }
  }
  for (auto& [name, list] : lists) {
    for (const auto& [variable, value] : variables)
      AddVariable(variable, value, *list.mutable_environment());
    list.set_bytes_per_second_max(bytes_per_second_max);
  }
  return lists;
}

}  // namespace attune::server
