#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace attune::pilots {

// The resources of a host or of one worker.
struct Resources {
  int cpus = 0;
  int gpus = 0;
  int64_t memory_bytes = 0;

  bool operator==(const Resources&) const = default;
};

// The gangs of a sweep that wait because no executors have free resources for them.
struct GangDemand {
  std::string sweep;  // empty: gangs that already run and need another host
  int gangs = 0;      // maximum number of gangs
  int workers = 1;
  int min_workers = 1;
  Resources worker;            // of each worker
  std::string missing_labels;  // required labels that pilots do not have, such as gpu=h100
  std::set<std::string> excluded_executors;  // executors without the required labels
};

// A connected executor.
struct Host {
  std::string name;
  Resources total;
  Resources free;
  std::string pilot = {};   // the pilot that it belongs to; empty: no pilot
  bool takes_gangs = true;  // false: a user has drained it
};

// A pilot in the engine's queue, or a pilot that is being submitted. Its nodes without a Host have
// not joined.
struct Pilot {
  std::string name;
  int nodes = 1;
  bool ending = false;  // it runs no more gangs, but still occupies its nodes
  // It ends soon. No gangs should start there, and its running gangs will need another pilot.
  bool closing = false;
};

// Limits on the number of nodes. A new pilot has `nodes_per_pilot` nodes.
struct Limits {
  int nodes_min = 0;
  int nodes_max = 0;
  int nodes_per_pilot = 1;

  // Maximum number of pilots.
  int pilots_max() const { return nodes_max / nodes_per_pilot; }
};

// A reason why waiting gangs get no pilots.
struct Hindrance {
  std::string sweep;  // empty: it affects all sweeps
  std::string text;

  bool operator==(const Hindrance&) const = default;
};

struct Plan {
  int submit = 0;  // number of new pilots
  // Existing pilots that waiting gangs can use. Other idle pilots may be released.
  std::set<std::string> needed;
  std::vector<Hindrance> impossible;  // gangs that cannot run with any allowed number of pilots
};

// Decides how many pilots to submit for the waiting gangs. The largest gangs are planned first. A
// gang gets all pilots that it still needs, or none if the limit does not allow them. Nodes that
// have not joined count with the resources `node`. Executors outside pilots count as well.
// `gpu_option`: see EngineFacts. A pure function.
Plan MakePlan(std::vector<GangDemand> demands, const std::vector<Host>& hosts,
              const std::vector<Pilot>& pilots, const Resources& node, const Limits& limits,
              const std::string& gpu_option);

}  // namespace attune::pilots
