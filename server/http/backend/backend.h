#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"
#include "core/log/command.h"

namespace attune::server {

// What HTTP needs from the rest of the server; the server implements it. Every call may be made
// from any thread.
class Backend {
 public:
  virtual ~Backend() = default;

  // Decides on commands of a person's, on each only where the one before led to something, and with
  // what follows from that (a sweep ends at a limit); what they led to is durable, of all at once.
  // Each has an answer of its own: what it led to, or why it was refused. Events that follow by
  // themselves (a trial starts) are not among those. `actor` is whose token they came with. For
  // each that was not refused, `after` is shown what it led to and the state behind all that was
  // decided on together, where its sweep may have ended; it is to be quick, and may be empty.
  using Answer = Result<std::vector<Event>>;
  using After = std::function<void(std::span<const Event>, const Brain&)>;
  virtual std::vector<Answer> Execute(std::vector<Command> commands, const std::string& actor,
                                      const After& after) = 0;
  Answer Execute(Command command, const std::string& actor, const After& after = {}) {
    std::vector<Command> one;
    one.push_back(std::move(command));
    return std::move(Execute(std::move(one), actor, after).front());
  }

  // Shows the state as it is between two decisions. `look` is to be quick.
  virtual void QueryState(const std::function<void(const Brain&)>& look) = 0;

  struct ExecutorStatus {
    // A part of a gang that holds slots there.
    struct Part {
      AttemptId attempt;
      int first_rank = 0;  // of the gang, with those up to last_rank
      int last_rank = 0;
    };

    std::string name;
    std::string state;  // online, draining, drained, unhealthy, quarantined, lost
    std::string address;
    Resources total;
    Resources free;
    Labels labels;
    std::optional<Drain> drain;
    std::string problem;  // that it says it has; empty: none
    std::optional<Quarantine> quarantine;
    // As it says itself, whatever slots are taken; 0: not known.
    int64_t disk_free_bytes = 0;
    int64_t memory_free_bytes = 0;
    std::optional<double> silent_seconds;  // since it was heard last; absent: it is not connected
    std::vector<Part> running;             // those placed first come first
  };
  virtual std::vector<ExecutorStatus> Executors() = 0;

  struct LogSlice {
    std::string data;
    uint64_t offset = 0;      // of data's first byte
    uint64_t file_bytes = 0;  // size of the log now
    // Bytes that are missing because the log reached its limit. Equal: none are.
    uint64_t gap_begin = 0;
    uint64_t gap_end = 0;
  };
  // Part of a rank's log; secrets are masked. kUnavailable when the executor that holds it is not
  // connected.
  virtual Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                                   uint32_t limit_bytes) = 0;

  struct CheckpointPiece {
    std::string data;
    uint64_t file_bytes = 0;  // size of the file
  };
  // Part of a file of a checkpoint, wherever that lies; at most 4 MiB. kNotFound: no such
  // checkpoint or file. kConflict: it was dropped. kUnavailable: nobody who has it is connected, or
  // too many are reading.
  virtual Result<CheckpointPiece> ReadCheckpoint(const CheckpointId& checkpoint,
                                                 const std::string& file, uint64_t offset,
                                                 uint32_t limit_bytes) = 0;

  // Whether the server has a copy of its own, which outlives the executor's.
  virtual bool IsStored(const CheckpointId&, const std::string& /*digest*/) { return false; }

  // Those of these secrets that have no value.
  virtual Result<std::vector<std::string>> UndefinedSecrets(const std::vector<std::string>&) {
    return std::vector<std::string>();
  }

  // Why there is nothing to show yet: the server reads its log, and how far that is.
  virtual Status Started() { return {}; }

  virtual Status Ready() = 0;  // why it cannot decide or write, for /readyz

  // Blocks until an event after `seq` is durable or `timeout_ms` has passed or the server stops;
  // returns the last durable one.
  virtual EventSeq WaitForEvents(EventSeq seq, int timeout_ms) = 0;
};

// An executor's status as the state has it. `silent_seconds` is copied into the result.
Backend::ExecutorStatus StatusOf(const State& state, const Executor& executor,
                                 std::optional<double> silent_seconds);

}  // namespace attune::server
