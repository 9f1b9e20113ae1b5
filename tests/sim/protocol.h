#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/simulate/worker.h"
#include "core/log/command.h"

// The messages of proto/attune/v1/executor.proto, in the words of core.
namespace attune::sim {

// ---- executor → server ---------------------------------------------------------------------

struct Hello {
  std::string name;
  std::string instance;
  Resources resources;
};
struct NumberedFact {
  uint64_t seq = 0;  // from 1, within an instance
  Command command;   // RecordFact or RecordRemoval
};
struct Facts {
  std::vector<NumberedFact> facts;
};
struct Heartbeat {
  Time sent;  // by a clock of the executor's
};
struct Goodbye {};

using FromExecutor = std::variant<Hello, Facts, Heartbeat, Goodbye>;

// ---- server → executor ---------------------------------------------------------------------

struct Assignment {
  AttemptId attempt;
  Epoch epoch;
  Config config;
  std::vector<RankSlot> ranks;
  std::optional<CheckpointRef> resume;
  Seconds stall_timeout;
  simulate::Orders orders;
  bool operator==(const Assignment&) const = default;
};
struct AttemptRef {
  AttemptId attempt;
  Epoch epoch;
  bool operator==(const AttemptRef&) const = default;
};
struct Removal {
  CheckpointId checkpoint;
  std::string path;
  bool operator==(const Removal&) const = default;
};

struct Welcome {};
struct Refusal {
  bool superseded = false;  // another process has this name; else: try again
};
struct Ack {
  uint64_t seq = 0;
  std::optional<Time> heartbeat;  // that this answers
};
struct Desired {
  uint64_t revision = 0;
  std::vector<Assignment> assignments;
  std::vector<AttemptRef> unwanted;  // that hold slots here; the executor says that they are gone
  std::vector<Removal> removals;
};

using ToExecutor = std::variant<Welcome, Refusal, Ack, Desired>;

// From when the newest answered heartbeat was sent.
inline constexpr int64_t kLeaseUs = 20'000'000;
inline constexpr int64_t kHeartbeatUs = kLeaseUs / 4;
inline constexpr int64_t kPatienceUs = kLeaseUs * 3 / 2;  // of the server

}  // namespace attune::sim
