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
  std::string sweep;
  int gangs = 0;  // at most
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
};

// A pilot that Slurm has, or is about to have. Its executor is a Host of the same name, or has not
// joined.
struct Pilot {
  std::string name;
  bool ending = false;  // it runs nothing more; its node is still taken
};

struct Limits {
  int nodes_min = 0;
  int nodes_max = 0;
};

struct Plan {
  int submit = 0;  // so many pilots more
  // Of the pilots there are: those that what waits could use. The others can go if they are idle.
  std::set<std::string> needed;
  std::vector<std::string> impossible;  // gangs that no number of pilots within the limit can run
};

// How many pilots what waits needs. The largest gangs come first; a gang gets all of the pilots
// that it lacks or none, and never more than the limit. Pilots whose executor has not joined count
// with `pilot`, what one has; executors that are no pilots count, too. Pure.
Plan MakePlan(std::vector<Wanted> wanted, const std::vector<Host>& hosts,
              const std::vector<Pilot>& pilots, const Room& pilot, const Limits& limits);

}  // namespace attune::slurm
