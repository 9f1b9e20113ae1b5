#include "tests/sim/run.h"

#include <utility>

#include "tests/sim/checkers/replay.h"
#include "tests/sim/service/disk.h"
#include "tests/sim/world.h"

namespace attune::sim {
namespace {

const std::vector<Event>* current_log = nullptr;

}  // namespace

const std::vector<Event>* CurrentLog() { return current_log; }

Outcome RunSeed(uint64_t seed, Variant variant) {
  const Plan plan = MakePlan(seed);
  const std::unique_ptr<Disk> disk = plan.sqlite ? MakeSqliteDisk() : MakeMemoryDisk();
  World world(plan, *disk, variant);
  current_log = &world.log();
  world.Run();
  if (!world.finding()) CheckReplay(world, disk->store(), variant, world.findings());
  current_log = nullptr;
  return {.finding = world.finding(),
          .log = world.log(),
          .virtual_seconds = static_cast<double>(world.now().us) / simulate::kSecondUs};
}

}  // namespace attune::sim
