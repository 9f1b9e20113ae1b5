#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include "executor/processes/guard.h"

// Replaces GoogleTest's main(), because this program may be started as a guard.
int main(int argc, char** argv) {
  attune::gang::MaybeRunGuard(argc, argv);
  spdlog::set_level(spdlog::level::off);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
