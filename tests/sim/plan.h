#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/log/sweep_spec.h"
#include "core/log/warm_start.h"

namespace attune::sim {

// How often faults happen in a world. In each world, about half of the faults never happen, so
// seeds differ in kind and not only in degree (swarm testing: Groce et al., ISSTA 2012).
struct FaultRates {
  // Average number per minute of virtual time.
  double connection_breaks = 0;
  double executor_crashes = 0;
  double executor_freezes = 0;  // stopped and continued later, perhaps after the end of its lease
  double executor_leaves = 0;   // says goodbye and comes back as a new process
  double health_changes = 0;    // a host reports a problem, or that the problem is gone
  double server_crashes = 0;
  double disk_full = 0;
  double backups = 0;  // of the log; each replaces the previous one
  // Probability in each case.
  double rank_fails = 0;     // in a step
  double rank_hangs = 0;     // in a step
  double cannot_start = 0;   // for each gang
  double never_starts = 0;   // for each gang
  double cannot_fetch = 0;   // for each checkpoint, snapshot of code or file of data
  double cannot_build = 0;   // for each environment that a gang needs
  double cannot_save = 0;    // for each checkpoint: the disk of the host is full
  double stored = 0;         // for each checkpoint: an object store gets a copy (no fault)
  double fills_disk = 0;     // in a step: the executor ends the gang for it
  double snapshot_used = 0;  // at a restart of the server
  double restored = 0;       // at a restart of the server: a backup replaces the log
  double slow_hellos = 0;    // for each connection: the server reads its Hello late
  // Upper bounds.
  int64_t delay_us = 0;       // delay of a message
  int64_t batch_us = 0;       // time until the conductor reads its queue
  int64_t replay_us = 0;      // time that a new server process needs to read its log
  int64_t disk_full_us = 0;   // time until the disk has space again
  int64_t clock_jump_us = 0;  // change of the server's wall clock at a restart, in both directions
};

struct PlannedHost {
  Resources resources;
  bool spans = false;
  std::string folder;  // Hello.folder
  Labels labels;
  int64_t gone_at_us = 0;   // it crashes at this time and never comes back; 0: never
  int64_t lifetime_us = 0;  // announced lifetime of each process; 0: unlimited
};

struct PlannedSweep {
  SweepSpec spec;
  int64_t created_at_us = 0;
  std::string curves;  // simulator/curves.h
  std::string owner;
  std::vector<WarmStart> warm_start = {};
  double ends_early = 0;  // share of its trials whose program ends early (endings.h)
};

// Everything about a world that is drawn before it starts.
struct Plan {
  uint64_t seed = 0;
  std::vector<PlannedHost> executors;
  std::vector<PlannedSweep> sweeps;
  FaultRates faults;
  double people = 0;        // actions of users per minute
  bool edits = false;       // users also edit sweeps
  bool annotates = false;   // users also write notes and tags
  double drains = 0;        // how often users drain or resume an executor, per minute
  int64_t quiet_at_us = 0;  // faults end and users stop acting
  int64_t step_us = 0;      // approximate duration of a training step
  bool identifies = false;  // the log has an identity, because backups are restored
  bool sqlite = false;
};

Plan MakePlan(uint64_t seed);

}  // namespace attune::sim
