#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace attune::slurm {

struct Room {
  int cpus = 0;
  int gpus = 0;
  int64_t memory_bytes = 0;

  bool operator==(const Room&) const = default;
};

// Gangs of one sweep that find no room.
struct Wanted {
  std::string sweep;  // empty: those of several
  int gangs = 0;      // at most
  int workers = 1;
  int min_workers = 1;
  Room worker;
  std::string lacking;           // labels that it asks for and pilots have not: gpu=h100
  std::set<std::string> barred;  // executors that have not, likewise
};

// An executor that is there.
struct Host {
  std::string name;
  Room total;
  Room free;
  std::string pilot = {};   // that it is a node of; empty: of none
  bool takes_gangs = true;  // false: a person has drained it
};

// A pilot that Slurm has, or is about to have. Nodes without a Host have not joined.
struct Pilot {
  std::string name;
  int nodes = 1;
  bool ending = false;  // it runs nothing more; its nodes are still taken
  // It ends soon: nothing more should start there, and what runs there will want another.
  bool closing = false;
};

// Of nodes; a new pilot has `nodes_per_pilot`.
struct Limits {
  int nodes_min = 0;
  int nodes_max = 0;
  int nodes_per_pilot = 1;

  // So many pilots may there be.
  int pilots_max() const { return nodes_max / nodes_per_pilot; }
};

// Why gangs that wait get no pilots.
struct Hindrance {
  std::string sweep;  // empty: all sweeps'
  std::string text;

  bool operator==(const Hindrance&) const = default;
};

struct Plan {
  int submit = 0;  // so many pilots more
  // Of the pilots there are: those that what waits could use. The others can go if they are idle.
  std::set<std::string> needed;
  std::vector<Hindrance> impossible;  // gangs that no number of pilots within the limit can run
};

// How many pilots what waits needs. The largest gangs come first; a gang gets all of the pilots
// that it lacks or none, and never more than the limit. Nodes of pilots that have not joined count
// with `node`, what one has; executors that are no pilots count, too. Pure.
Plan MakePlan(std::vector<Wanted> wanted, const std::vector<Host>& hosts,
              const std::vector<Pilot>& pilots, const Room& node, const Limits& limits);

}  // namespace attune::slurm
