#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/base/ids.h"
#include "server/storage/stores.h"
#include "server/storage/wanted.h"

namespace attune::server {

// The most uploads of a list, so that a message stays small. Others follow when these are done.
inline constexpr size_t kUploadsMax = 200;

// An executor that can upload now: it is connected and has rclone.
struct Uploader {
  std::string name;
  std::string folder;                  // the data folder (FolderOf)
  std::set<std::string> skipped = {};  // StoredPath() of copies that it cannot upload
};

// The executor that uploads the copy: the one that saved it, or another one that sees its data
// folder. Null: none can.
const Uploader* ChooseUploader(const WantedCopy& copy, const std::vector<Uploader>& uploaders);

// The lists of executors that must upload something: all wanted copies that are not stored, those
// of best reports first.
std::map<std::string, v1::Uploads> AssignUploads(const std::map<SweepId, WantedCopies>& sweeps,
                                                 const std::vector<Uploader>& uploaders,
                                                 const Variables& variables,
                                                 uint64_t bytes_per_second_max);

}  // namespace attune::server
