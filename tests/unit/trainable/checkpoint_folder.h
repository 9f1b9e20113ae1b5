#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attune/checkpoint.h"

// Shared code of the checkpoint tests.
namespace attune::inline sdk::trainable {

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "checkpoint-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }

  std::filesystem::path folder_;
};

inline constexpr std::size_t kMiB = 1 << 20;

// Runs `work` in a process with a limit of `bytes` for its own memory. Returns 0 if it succeeded.
int WithMemory(std::size_t bytes, const std::function<void()>& work);

}  // namespace attune::inline sdk::trainable
