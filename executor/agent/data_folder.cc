#include "executor/agent/data_folder.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>
#include <system_error>

namespace attune::agent {
namespace {

constexpr int kWords = 4;  // of 32 random bits

std::string RandomWord() {
  std::random_device random;
  std::string word;
  for (int i = 0; i < kWords; ++i) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x", random());
    word += digits.data();
  }
  return word;
}

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
