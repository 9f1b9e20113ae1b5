#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace attune::testing {

// A temporary folder that is deleted after the test. It is in memory if the machine has a memory
// file system, because every append waits for the disk.
class ScratchFolder {
 public:
  ScratchFolder() {
    const std::filesystem::path memory = "/dev/shm";
    const bool fast = ::access(memory.c_str(), W_OK) == 0;
    std::string name =
        ((fast ? memory : std::filesystem::temp_directory_path()) / "attune-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace attune::testing
