#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/plan.h"
#include "slurm/tools.h"

namespace attune::slurm {

// Hours of nodes, of CPUs and of GPUs.
struct Amount {
  double nodes = 0;
  double cpus = 0;
  double gpus = 0;
};

// What a fleet's pilots had of Slurm, which somebody pays, and what became of it.
struct Hours {
  Amount held;    // by pilots, from their start to their end, joined or not
  Amount in_use;  // of that: by gangs, as it was at each look
  Amount unseen;  // of that: while no manager looked; nobody knows
  Amount idle() const;
};

// Counts them, in `DATA-DIR/slurm/hours.json`. How long a job has run Slurm says, and how much of
// it was counted is written in the same file: a manager that dies, whenever, counts nothing twice
// and loses nothing but the use of its last seconds.
class HoursBook {
 public:
  // What lies longer before a look than this was not seen.
  static constexpr std::chrono::seconds kSeen{60};
  // Between two writes.
  static constexpr std::chrono::seconds kWritten{5};

  // `folder`: that of the fleet. kCorrupt: the file cannot be read.
  static Result<HoursBook> Open(const std::filesystem::path& folder);

  // Adds what has passed since the look before. `node`: what a node has that has not joined.
  Status Count(const std::vector<Job>& jobs, const std::vector<Host>& hosts, const Room& node);
  // Writes what has not been written yet.
  Status Write();

  const Hours& hours() const { return hours_; }

 private:
  // A pilot that Slurm remembers.
  struct Counted {
    std::chrono::seconds time{0};
    Amount size;  // nodes, CPUs and GPUs that it has
  };

  explicit HoursBook(std::filesystem::path file) : file_(std::move(file)) {}
  Status Read();

  std::filesystem::path file_;
  Hours hours_;
  std::map<std::string, Counted> pilots_;
  bool written_ = true;
  std::chrono::steady_clock::time_point written_at_;
};

}  // namespace attune::slurm
