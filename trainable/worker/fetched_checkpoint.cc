#include "trainable/worker/fetched_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attune/error.h"
#include "checkpoints/manifest.h"
#include "trainable/base/sockets.h"
#include "trainable/checkpoints/files.h"
#include "trainable/checkpoints/mapped_file.h"
#include "trainable/checkpoints/unfinished.h"

namespace attune::inline sdk::trainable {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBroadcastPieceBytes = 16 << 20;

bool IsPresent(const channel::Resume& resume) {
  const fs::path file = resume.path / checkpoints::kManifestFile;
  std::error_code failed;
  return fs::exists(file, failed) &&
         (resume.digest.empty() || checkpoints::DigestOf(ReadFile(file)) == resume.digest);
}

// Collective. Sends the file `from` of rank 0 to the ranks that have a file `to`.
void BroadcastFile(ProcessGroups& groups, const fs::path& from, std::int64_t bytes, NewFile* to) {
  std::optional<MappedFile> file;
  if (!from.empty()) file.emplace(from);
  for (std::int64_t sent = 0; sent < bytes;) {
    std::string piece;
    if (file) {
      piece = file->bytes().substr(sent, kBroadcastPieceBytes);
      if (piece.empty()) throw Error(from.string() + ": is shorter than its manifest says");
    }
    piece = groups.Broadcast(piece);
    if (to != nullptr) to->Append(piece);
    sent += std::ssize(piece);
  }
}

}  // namespace

FetchedCheckpoint::FetchedCheckpoint(const Start& start, ProcessGroups& groups)
    : folder_(start.resume->path) {
  const bool is_local = IsPresent(*start.resume);
  if (start.rank == 0 && !is_local) {
    throw Error(folder_.string() +
                ": the checkpoint to resume from is missing, or has another digest");
  }
  const std::vector<std::int64_t> local_flags = groups.Gather(is_local ? 1 : 0);
  if (std::ranges::count(local_flags, 0) == 0) return;

  const std::string json = groups.Broadcast(
      start.rank == 0 ? ReadFile(folder_ / checkpoints::kManifestFile) : std::string());
  const checkpoints::Manifest manifest =
      OrThrow(checkpoints::ReadManifest(json, {}), folder_.string());
  const fs::path source = start.rank == 0 ? folder_ : fs::path();
  owns_copy_ = !is_local && start.local_rank == 0;
  if (!is_local) {
    folder_ = fs::path(start.checkpoint_dir) /
              (".attempt-" + std::to_string(start.attempt) + "-resumed-" +
               std::to_string(start.rank - start.local_rank));
  }
  if (owns_copy_) {
    RemoveUnfinished(start.checkpoint_dir, start.attempt);
    fs::create_directories(folder_);
    WriteFile(folder_ / checkpoints::kManifestFile, json);
  }
  for (const auto& [name, listed] : manifest.files) {
    std::optional<NewFile> file;
    const fs::path copy = folder_ / name;
    if (owns_copy_) {
      fs::create_directories(copy.parent_path());
      file.emplace(copy);
    }
    BroadcastFile(groups, source.empty() ? source : source / name,
                  static_cast<std::int64_t>(listed.bytes), file ? &*file : nullptr);
  }
  groups.Barrier();
}

FetchedCheckpoint::~FetchedCheckpoint() {
  std::error_code ignored;  // the next attempt on this host removes it
  if (owns_copy_) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace attune::inline sdk::trainable
