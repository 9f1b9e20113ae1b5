#include "core/log/stored_path.h"

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

namespace attune {
namespace {

constexpr size_t kDigestDigits = 16;

}  // namespace

std::string StoredSweepName(LogIdentity identity, SweepId sweep) {
  std::array<char, 17> digits;
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64, identity.value);
  return ToString(sweep) + "-" + digits.data();
}

std::string StoredCheckpoints(LogIdentity identity, SweepId sweep) {
  return "checkpoints/" + StoredSweepName(identity, sweep);
}

std::string StoredPath(LogIdentity identity, const CheckpointId& id, const std::string& digest) {
  const size_t digits = digest.find(':') + 1;  // 0 if there is no colon
  return StoredCheckpoints(identity, id.trial.sweep) + "/" + std::to_string(id.trial.number.value) +
         "/" + std::to_string(id.attempt) + "-" + std::to_string(id.step.value) + "-" +
         digest.substr(digits, kDigestDigits);
}

}  // namespace attune
