#pragma once

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoints/manifest.h"
#include "object_storage/settings.h"
#include "system/sha256.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {

// fake_rclone.sh in its own folder.
class FakeRclone {
 public:
  FakeRclone() {
    gang::WriteFile(Path("rclone"),
                    gang::ReadFile(std::filesystem::path(ATTUNE_SOURCE_DIR) /
                                   "tests/unit/executor/transfer/fake_rclone.sh"),
                    true);
  }

  object_storage::Environment Environment() const {
    return {"PATH=/usr/bin:/bin", "ATTUNE_RCLONE=" + Path("rclone").string()};
  }

  void SetKey(const std::string& key) const { gang::WriteFile(Path("key"), key); }
  void Fail(const std::string& command, const std::string& message) const {
    gang::WriteFile(Path("fail-" + command), message + "\n");
  }
  void Repair(const std::string& command) const {
    std::filesystem::remove(Path("fail-" + command));
  }

  // Lets the next call of the command wait.
  void Hold(const std::string& command) const {
    ASSERT_EQ(mkfifo(Path("hold-" + command).c_str(), 0600), 0);
  }
  // Lets later calls of the command pass. A call that waits stays.
  void StopHolding(const std::string& command) const {
    std::filesystem::remove(Path("hold-" + command));
  }
  // Ends the waiting of a call. REQUIRES: one waits.
  void Release(const std::string& command) const {
    std::ofstream pipe(Path("hold-" + command));
    StopHolding(command);
    pipe << "\n";
  }

  // Commands with the paths in the store: `copy /store/checkpoints/a/`.
  std::vector<std::string> Calls(const std::string& command = "") const {
    std::vector<std::string> calls = Lines("calls");
    std::erase_if(calls, [&](const std::string& call) { return !call.starts_with(command); });
    return calls;
  }
  bool AwaitCall(const std::string& start, size_t count = 1) const {
    return gang::AwaitCondition([&] { return Calls(start).size() >= count; });
  }
  // The names of the files that were copied.
  std::vector<std::string> Copied() const { return Lines("copied"); }
  // The nice values of the processes.
  std::vector<std::string> Priorities() const { return Lines("priorities"); }
  std::vector<std::string> Limits() const { return Lines("limits"); }

  // The folder that is the store.
  std::filesystem::path Store() const { return Path("store"); }
  std::string Address() const { return "file://" + Store().string(); }

 private:
  std::filesystem::path Path(const std::string& name) const { return folder_.path() / name; }
  std::vector<std::string> Lines(const std::string& file) const {
    std::istringstream text(gang::ReadFile(Path(file)));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  gang::TempDir folder_;
};

// Writes a checkpoint with the files `model` and `state/rng`. Returns its digest.
inline std::string WriteCheckpoint(const std::filesystem::path& folder, const std::string& model) {
  checkpoints::Manifest manifest{.step = 9};
  manifest.files["model"] = {model.size(), Sha256::HexOf(model)};
  manifest.files["state/rng"] = {3, Sha256::HexOf("rng")};
  std::filesystem::create_directories(folder / "state");
  gang::WriteFile(folder / "model", model);
  gang::WriteFile(folder / "state/rng", "rng");
  gang::WriteFile(folder / "manifest.json", ToJson(manifest));
  return checkpoints::DigestOf(ToJson(manifest));
}

}  // namespace attune::agent
