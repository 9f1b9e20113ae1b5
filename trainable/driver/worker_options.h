#pragma once

#include <cstdint>
#include <string>
#include <utility>

// Checks for options that TorchTrainer and WorkerGroup share.
namespace attune::inline sdk::trainable {

// The number of bits of an integer that a JSON configuration keeps exactly.
inline constexpr int kSeedBits = 53;

// The number of GPUs that this process can use.
int CountGpus();

class OptionCheck {
 public:
  explicit OptionCheck(std::string owner) : owner_(std::move(owner)) {}

  // Throws attune::Error with the text "OWNER: OPTION RULE" unless `holds`.
  void Require(bool holds, const std::string& option, const std::string& rule) const;

  void RequireWorkers(int num_workers, int cpus_per_worker, std::uint64_t seed) const;
  void RequireGpus(int num_workers, int needed) const;

 private:
  std::string owner_;
};

}  // namespace attune::inline sdk::trainable
