#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "pilots/engine.h"
#include "pilots/plan.h"

namespace attune::pilots {

// Node-hours, CPU-hours and GPU-hours.
struct Amount {
  double nodes = 0;
  double cpus = 0;
  double gpus = 0;
};

// The resources that a fleet's pilots got, and how they were used.
struct Hours {
  Amount held;    // allocated to pilots, from their start to their end, joined or not
  Amount in_use;  // the part of `held` that gangs used
  Amount unseen;  // the part of `held` while no manager observed the pilots: use unknown
  Amount idle() const;
};

// Counts the hours in the file `hours.json` of the fleet's folder. The engine reports how long each
// job has run, and the file also stores how much of that time was counted. So a manager that is
// killed and started again counts no time twice and loses no time. Only the use of the last seconds
// can be lost.
class HoursBook {
 public:
  // A longer time between two counts is unseen.
  static constexpr std::chrono::seconds kUnseenAfter{60};
  // Minimum time between two writes of the file.
  static constexpr std::chrono::seconds kWritePeriod{5};

  // `folder`: the fleet's folder. kCorrupt: the file is damaged.
  static Result<HoursBook> Open(const std::filesystem::path& folder);

  // Adds the time since the previous count. `node`: the assumed resources of a node whose executor
  // has not joined.
  Status Count(const std::vector<Job>& jobs, const std::vector<Host>& hosts, const Resources& node);
  // Writes the file if something changed since the last write.
  Status Write();

  const Hours& hours() const { return hours_; }

 private:
  // A pilot that the engine still lists.
  struct CountedPilot {
    std::chrono::seconds time{0};  // the part of its run time that was counted
    Amount size;                   // its nodes, CPUs and GPUs
  };

  explicit HoursBook(std::filesystem::path file) : file_(std::move(file)) {}
  Status Read();

  std::filesystem::path file_;
  Hours hours_;
  std::map<std::string, CountedPilot> pilots_;  // by name
  bool written_ = true;
  std::chrono::steady_clock::time_point written_at_;
};

}  // namespace attune::pilots
