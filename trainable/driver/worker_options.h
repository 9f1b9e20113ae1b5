#pragma once

#include <cstdint>
#include <string>
#include <utility>

// What TorchTrainer and WorkerGroup ask alike of their options.
namespace attune::inline sdk::trainable {

// Integers that a configuration's JSON keeps exactly.
inline constexpr int kSeedBits = 53;

// GPUs that this process sees.
int CountGpus();

class OptionCheck {
 public:
  explicit OptionCheck(std::string owner) : owner_(std::move(owner)) {}

  // Throws attune::Error unless it holds: "OWNER: OPTION RULE".
  void Require(bool holds, const std::string& option, const std::string& rule) const;

  void RequireWorkers(int num_workers, int cpus_per_worker, std::uint64_t seed) const;
  void RequireGpus(int num_workers, int needed) const;

 private:
  std::string owner_;
};

}  // namespace attune::inline sdk::trainable
