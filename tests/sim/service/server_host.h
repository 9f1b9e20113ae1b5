#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/base/random.h"
#include "server/store/event_store.h"
#include "simulator/timeline.h"
#include "tests/sim/checkers/reality.h"
#include "tests/sim/plan.h"
#include "tests/sim/service/frail_store.h"
#include "tests/sim/service/network.h"
#include "tests/sim/service/server_process.h"

namespace attune::sim {

// Told what the server does, to check it and to keep it.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void OnDurable(std::span<const Event> events) = 0;  // in the store
  virtual void OnInputs(std::vector<Input> inputs) = 0;       // of those events
  // What lay in memory when a process died with all of it durable, and what the next one made of
  // the log: the same state, as bytes.
  virtual void OnRecovered(const std::string& before, const std::string& after) = 0;
  // While no process is there, the log is replaced by the backup, if there is one. Returns whether.
  virtual bool OnRestore() = 0;
};

// The server's host: its processes, which die between any two of their moves and come back, and the
// time that they live in.
class ServerHost final : public ServerEnd {
 public:
  using Answer = Result<std::span<const Event>>;
  using Done = server::Done;  // never called if the server dies before

  struct Stage {
    simulate::Timeline& timeline;
    RandomStream& random;
    Network& network;
    Reality& reality;
    const FaultRates& faults;
    ServerObserver& observer;
    server::EventStore& store;
    Variant variant;
    bool identifies = false;  // Plan::identifies
    uint64_t seed = 0;
  };
  explicit ServerHost(Stage stage);

  void Start();  // a new process, which then reads its log
  // Dies at one of the next moves that it makes; comes back later.
  void CrashSoon();

  // Not answered when the server is away.
  void Submit(Command command, Done done);
  void Submit(std::vector<Command> commands, Done done);  // in one request
  // The state that is durable; null when the server is away.
  const State* state() const { return process_ == nullptr ? nullptr : process_->state(); }
  Time WallClock() const { return Time{kEpochUs + stage_.timeline.now().us + clock_offset_us_}; }

  void OnMessage(StreamId stream, v1::FromExecutor message) override;
  void OnClosed(StreamId stream) override;

 private:
  // What lies beside the log, and outlives a restored one.
  struct Marks final : server::LogMarks {
    std::optional<server::LogMark> Read() override { return mark; }
    void Write(const server::LogMark& written) override { mark = written; }
    std::optional<server::LogMark> mark;
  };

  static constexpr int64_t kEpochUs = 1'700'000'000'000'000;

  void ReadLog();
  void CheckLeases();
  void Wake(int64_t after_us);
  void WakeSoon();
  void Step();
  void StepWhenDue();
  void Die();
  void RestoreBackup();
  // Unless this process is gone by then.
  void After(int64_t us, simulate::Timeline::Action action);

  const Stage stage_;
  RandomStream identities_;  // and when backups are restored
  Marks marks_;
  FrailStore store_;
  std::vector<Input> inputs_;  // of the batch being decided
  std::optional<DeathPoint> dies_at_;
  std::unique_ptr<ServerProcess> process_;  // null: it is away
  uint64_t processes_ = 0;
  int64_t clock_offset_us_ = 0;
  bool awake_ = false;       // a batch is about to be handled
  std::optional<Time> due_;  // when it will look again by itself
  std::string before_;       // the state at the last death, if all of it was durable
};

}  // namespace attune::sim
