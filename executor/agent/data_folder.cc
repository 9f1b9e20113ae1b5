#include "executor/agent/data_folder.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/result.h"
#include "system/files.h"
#include "system/random_word.h"

namespace attune::agent {
namespace {

// The word in folder-id; empty if it cannot be read.
std::string ReadFolderId(const std::filesystem::path& path) {
  const Result<std::string> word = ReadWord(path);
  return word.ok() ? *word : "";
}

// Writes the file atomically. Replaces an existing file only if that is empty, as after a full disk
// or a power failure.
void WriteFolderId(const std::filesystem::path& path) {
  const std::string word = RandomWord();
  const std::filesystem::path draft = path.string() + "." + word;
  if (WriteWhole(draft, word + "\n", kReadableByAll).ok() &&
      link(draft.c_str(), path.c_str()) != 0 && errno == EEXIST && ReadFolderId(path).empty()) {
    [[maybe_unused]] const int replaced = rename(draft.c_str(), path.c_str());
  }
  unlink(draft.c_str());
  // If the file were lost, the folder would get another identity and its checkpoints no owner.
  [[maybe_unused]] const Status unsynced = SyncFolder(path.parent_path());
}

}  // namespace

std::string FolderIdentity(const std::filesystem::path& data) {
  std::error_code failed;
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(data, failed), failed);
  std::filesystem::create_directories(folder, failed);
  const std::filesystem::path path = folder / "folder-id";
  std::string word = ReadFolderId(path);
  if (word.empty()) {
    WriteFolderId(path);
    word = ReadFolderId(path);
  }
  return word.empty() ? "" : word + ":" + folder.string();
}

}  // namespace attune::agent
