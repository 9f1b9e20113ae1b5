#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/log/sweep_spec.h"
#include "core/log/warm_start.h"

namespace attune::sim {

// How often things go wrong in a world. Half of them never do in a given one, so that seeds differ
// in kind and not only in number (swarm testing: Groce et al., ISSTA 2012).
struct FaultRates {
  // A minute of virtual time.
  double connection_breaks = 0;
  double executor_crashes = 0;
  double executor_freezes = 0;  // stopped and continued later, its lease perhaps over
  double executor_leaves = 0;   // says goodbye, comes back as a new process
  double host_ails = 0;         // says that it has a problem, or that it has none any more
  double server_crashes = 0;
  double disk_full = 0;
  double backups = 0;  // of the log, each in place of the one before
  // Of one, each time.
  double rank_fails = 0;     // a step
  double rank_hangs = 0;     // a step
  double cannot_start = 0;   // a gang
  double never_starts = 0;   // a gang
  double cannot_fetch = 0;   // a checkpoint
  double cannot_save = 0;    // a checkpoint: the disk of the host is full
  double fills_disk = 0;     // a step: the gang is ended for it
  double snapshot_used = 0;  // a restart of the server
  double restored = 0;       // a restart of the server: with the log as the backup has it
  double slow_hellos = 0;    // a connection: its Hello lies unread for a while
  // At most.
  int64_t delay_us = 0;       // of a message
  int64_t batch_us = 0;       // until the conductor looks at its queue
  int64_t replay_us = 0;      // until a server that has started has read its log
  int64_t disk_full_us = 0;   // until there is space again
  int64_t clock_jump_us = 0;  // of the server's wall clock, at a restart, to either side
};

struct PlannedHost {
  Resources resources;
  bool spans = false;
  std::string folder;  // Hello.folder
  Labels labels;
  int64_t gone_at_us = 0;  // it dies then and never comes back; 0: it always does
  int64_t lives_us = 0;    // each of its processes, which says so; 0: as long as nothing befalls it
};

struct PlannedSweep {
  SweepSpec spec;
  int64_t created_at_us = 0;
  std::string curves;  // simulator/curves.h
  std::string owner;
  std::vector<WarmStart> warm_start = {};
  double ends_early = 0;  // of its trials: their program ends by itself (endings.h)
};

// A whole world before it begins: everything that is drawn ahead.
struct Plan {
  uint64_t seed = 0;
  std::vector<PlannedHost> executors;
  std::vector<PlannedSweep> sweeps;
  FaultRates faults;
  double people = 0;        // what they do, a minute
  bool edits = false;       // they edit sweeps, too
  double drains = 0;        // how often they drain an executor or resume one, a minute
  int64_t quiet_at_us = 0;  // faults end and people go away
  int64_t step_us = 0;      // a step of training, about
  bool identifies = false;  // the server gives its log identities, for backups are restored
  bool sqlite = false;
};

Plan MakePlan(uint64_t seed);

}  // namespace attune::sim
