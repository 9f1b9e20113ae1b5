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

// The interface through which HTTP uses the rest of the server. All methods may be called from any
// thread.
class Backend {
 public:
  virtual ~Backend() = default;

  // Executes a client's commands and waits until their events are durable. A command is executed
  // only if the one before it caused an event. Each command gets an answer: its events, or why it
  // was refused. Events that follow by themselves, such as the start of a trial, are not in the
  // answers. `actor` is the name of the client's token.
  //
  // For each command that was not refused, `after` gets its events and the state after all
  // commands, in which the sweep may have ended. `after` must be fast; it may be empty.
  using Answer = Result<std::vector<Event>>;
  using Callback = std::function<void(std::span<const Event>, const Brain&)>;
  virtual std::vector<Answer> Execute(std::vector<Command> commands, const std::string& actor,
                                      const Callback& after) = 0;
  Answer Execute(Command command, const std::string& actor, const Callback& after = {}) {
    std::vector<Command> one;
    one.push_back(std::move(command));
    return std::move(Execute(std::move(one), actor, after).front());
  }

  // Calls `look` with the state between two decisions. `look` must be fast.
  virtual void QueryState(const std::function<void(const Brain&)>& look) = 0;

  struct ExecutorStatus {
    // The part of a gang that holds slots of the executor: the ranks from first_rank to last_rank.
    struct Part {
      AttemptId attempt;
      int first_rank = 0;
      int last_rank = 0;
    };

    std::string name;
    std::string state;  // online, draining, drained, unhealthy, quarantined, lost
    std::string address;
    Resources total;
    Resources free;
    Labels labels;
    std::optional<Drain> drain;
    std::string problem;  // the problem that it has reported; empty: none
    // Why its uploads to object stores are paused; empty: they are not.
    std::string storage_problem;
    std::optional<Quarantine> quarantine;
    // From its own report, independent of slots; 0: unknown.
    int64_t disk_free_bytes = 0;
    int64_t memory_free_bytes = 0;
    std::optional<double> silent_seconds;  // since its last message; nullopt: it is not connected
    std::vector<Part> running;             // in the order of placement
  };
  virtual std::vector<ExecutorStatus> Executors() = 0;

  struct LogSlice {
    std::string data;
    uint64_t offset = 0;      // offset of the first byte of `data`
    uint64_t file_bytes = 0;  // present size of the log
    // The range of missing bytes, which were cut out when the log reached its limit. Empty if both
    // are equal.
    uint64_t gap_begin = 0;
    uint64_t gap_end = 0;
  };
  // Reads a part of a rank's log with masked secrets. kUnavailable: the executor that holds it is
  // not connected.
  virtual Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                                   uint32_t limit_bytes) = 0;

  struct CheckpointPiece {
    std::string data;
    uint64_t file_bytes = 0;  // size of the file
  };
  // Reads at most 4 MiB of a checkpoint's file, wherever it is stored. kNotFound: no such
  // checkpoint or file. kConflict: the checkpoint was dropped. kUnavailable: no executor that has
  // it is connected, or too many requests are reading.
  virtual Result<CheckpointPiece> ReadCheckpoint(const CheckpointId& checkpoint,
                                                 const std::string& file, uint64_t offset,
                                                 uint32_t limit_bytes) = 0;

  // Whether the server's storage has a copy, which outlives the executor's.
  virtual bool IsStored(const CheckpointId&, const std::string& /*digest*/) { return false; }

  // Where the checkpoint's copy is in the object store at this address, for people.
  virtual std::string UrlOfCopy(const CheckpointId&, const std::string& /*digest*/,
                                const std::string& /*address*/) {
    return "";
  }

  // The address of the object store for new sweeps that name none; empty: there is none.
  virtual std::string DefaultStore() { return ""; }

  // Whether new sweeps can use the object store. kInvalid: the address is not valid, or rclone is
  // missing on this host or on a connected executor. Does not connect to the store.
  virtual Status CheckStore(const std::string& /*address*/) { return {}; }

  // Returns the names of the secrets that have no value.
  virtual Result<std::vector<std::string>> UndefinedSecrets(const std::vector<std::string>&) {
    return std::vector<std::string>();
  }

  // An error while the server still reads its log, with the progress.
  virtual Status Started() { return {}; }

  virtual Status Ready() = 0;  // why it cannot decide or write, for /readyz

  // Blocks until an event after `seq` is durable, `timeout_ms` has passed or the server stops.
  // Returns the last durable event.
  virtual EventSeq WaitForEvents(EventSeq seq, int timeout_ms) = 0;
};

// The status of an executor in this state. `silent_seconds` is copied into the result.
Backend::ExecutorStatus StatusOf(const State& state, const Executor& executor,
                                 std::optional<double> silent_seconds);

}  // namespace attune::server
