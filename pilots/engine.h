#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace attune::pilots {

// The phase of a job. A job in an unknown state counts as running, so that no second pilot is
// submitted for it.
enum class Phase { kPending, kRunning, kEnding, kEnded };

// A pilot's job, as its engine lists it.
struct Job {
  std::string id;
  std::string name;  // of the pilot
  Phase phase = Phase::kRunning;
  std::string state;       // the engine's name of the state, such as RUNNING
  bool cancelled = false;  // it has ended because someone ended it
  std::string ends;        // such as 2026-11-22T23:18:07; N/A or empty: not known yet
  int nodes = 1;
  bool lost_node = false;                    // one of its nodes has ended and does not come back
  std::chrono::seconds ran{0};               // run time until now, or until its end
  std::optional<std::chrono::seconds> left;  // until its time limit; nullopt: no limit
  std::string node;                          // such as n3 or n[1-4]; empty: none yet
  std::string reason;                        // in the engine's words
};

// Facts about a kind of engine.
struct EngineFacts {
  std::string name;     // for messages, such as "Slurm"
  std::string command;  // the command of `attune`, such as "slurm"; also a folder in DATA-DIR
  std::string cleanup;  // how users end all pilots without `attune`
  // The engine asks a pilot to leave this long before its time limit.
  std::chrono::seconds leave_before;
  // A pilot that was asked to leave is cancelled after this time.
  std::chrono::seconds leave_timeout;
  // The same for `down`, which a user waits for.
  std::chrono::seconds down_timeout;
  // Cancel() also ends a job that has been ending for too long.
  bool cancels_ending_jobs = false;
  std::string place;       // what pilots are submitted to, such as "partition"
  std::string gpu_option;  // how users give pilots more GPUs, such as "--gres"
};

// A system that runs the pilots of a fleet as its jobs, such as Slurm. Errors:
//
// - kInvalid: the engine refuses the request, and would refuse it again. The message is its own.
// - kUnavailable: the engine did not answer, or cannot accept the request now.
// - kNotFound: the engine's tools are not installed.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineFacts& facts() const = 0;

  // Submits a pilot and returns the job's id. After kUnavailable, the job may exist.
  virtual Result<std::string> Submit(const std::string& pilot) = 0;

  // The fleet's jobs, including jobs that ended a short time ago.
  virtual Result<std::vector<Job>> Jobs() = 0;

  // Asks the executors of running jobs to leave.
  virtual Status RequestExit(const std::vector<std::string>& ids) = 0;
  // Ends jobs with all their processes.
  virtual Status Cancel(const std::vector<std::string>& ids) = 0;

  // Tells users how to read the log of a job, such as "read /shared/slurm/logs/attune-….log".
  virtual std::string LogHint(const Job& job) const = 0;
};

}  // namespace attune::pilots
