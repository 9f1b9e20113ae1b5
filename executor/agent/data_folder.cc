#include "executor/agent/data_folder.h"

#include <unistd.h>

#include <fstream>
#include <system_error>

#include "executor/agent/random_word.h"

namespace attune::agent {
namespace {

std::string ReadWord(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Whole or not at all, and never in place of another's.
void WriteWord(const std::filesystem::path& path) {
  const std::string word = RandomWord();
  const std::filesystem::path draft = path.string() + "." + word;
  {
    std::ofstream file(draft);
    file << word << "\n";
  }
  [[maybe_unused]] const int linked = link(draft.c_str(), path.c_str());
  unlink(draft.c_str());
}

}  // namespace

std::string FolderIdentity(const std::filesystem::path& data) {
  std::error_code failed;
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(data, failed), failed);
  std::filesystem::create_directories(folder, failed);
  const std::filesystem::path path = folder / "folder-id";
  std::string word = ReadWord(path);
  if (word.empty()) {
    WriteWord(path);
    word = ReadWord(path);
  }
  return word.empty() ? "" : word + ":" + folder.string();
}

}  // namespace attune::agent
