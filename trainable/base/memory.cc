#include "trainable/base/memory.h"

#include <malloc.h>

#include <cstdlib>
#include <latch>
#include <memory>
#include <string_view>
#include <thread>

namespace attune::inline sdk::trainable {
namespace {

#ifdef __GLIBC__
// The highest values that glibc accepts.
constexpr int kMmapThreshold = 32 << 20;
constexpr int kTrimThreshold = 64 << 20;
constexpr int kTopPad = 16 << 20;

bool UserHasSetLimits() {
  for (const char* variable :
       {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  const char* value = std::getenv("GLIBC_TUNABLES");
  const std::string_view tunables = value == nullptr ? "" : value;
  return tunables.find("_threshold") != tunables.npos || tunables.find("top_pad") != tunables.npos;
}
#endif

}  // namespace

void KeepFreedMemory() {
#ifdef __GLIBC__
  if (UserHasSetLimits()) return;
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, kTrimThreshold);
  mallopt(M_TOP_PAD, kTopPad);
#endif
}

void MakeArenasOfRanks() {
  std::latch both_have_one(2);  // the arena of an ended thread is used again
  const auto use_malloc = [&] {
    const auto used = std::make_unique<int>();
    both_have_one.arrive_and_wait();
  };
  std::thread first(use_malloc), second(use_malloc);
  first.join();
  second.join();
}

}  // namespace attune::inline sdk::trainable
