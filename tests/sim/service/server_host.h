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
#include "tests/sim/service/crashing_store.h"
#include "tests/sim/service/network.h"
#include "tests/sim/service/server_process.h"

namespace attune::sim {

// Observes the server, to check it and to keep its log.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void OnDurable(std::span<const Event> events) = 0;  // after they were stored
  virtual void OnInputs(std::vector<Input> inputs) = 0;  // the calls that produced these events
  // Compares serialized states: the state in memory at a crash, if all of it was durable, and the
  // state that the next process read from the log. They must be equal.
  virtual void OnRecovered(const std::string& before, const std::string& after) = 0;
  // Replaces the log by the newest backup while no process runs. Returns false if there is none.
  virtual bool OnRestore() = 0;
};

// The server's host: its processes, which may crash between any two steps and restart, and its wall
// clock.
class ServerHost final : public ServerEnd {
 public:
  using Answer = Result<std::span<const Event>>;
  using Done = server::Done;  // never called if the server crashes before

  struct Context {
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
  explicit ServerHost(Context context);

  void Start();  // starts a new process, which then reads the log
  // Crashes in one of the next steps and restarts later.
  void CrashSoon();

  // Submit a command. No answer comes while the server is down.
  void Submit(Command command, Done done);
  void Submit(std::vector<Command> commands, Done done);  // in one request
  // The durable state; null while the server is down.
  const State* state() const { return process_ == nullptr ? nullptr : process_->state(); }
  Time WallClock() const { return Time{kEpochUs + context_.timeline.now().us + clock_offset_us_}; }

  void OnMessage(StreamId stream, v1::FromExecutor message) override;
  void OnClosed(StreamId stream) override;

 private:
  // A file next to the log, which a restore of the log does not change.
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
  void Crash();
  void RestoreBackup();
  // Runs `action` later if the process still exists at that time.
  void ScheduleAfter(int64_t us, simulate::Timeline::Action action);

  const Context context_;
  RandomStream restore_draws_;  // identities of logs, and restores of backups
  Marks marks_;
  CrashingStore store_;
  std::vector<Input> inputs_;  // of the batch being decided
  std::optional<CrashPoint> crash_point_;
  std::unique_ptr<ServerProcess> process_;  // null: the server is down
  uint64_t processes_ = 0;
  int64_t clock_offset_us_ = 0;
  bool awake_ = false;             // a step is scheduled
  std::optional<Time> next_step_;  // time at which the process asked for a step
  std::string state_at_crash_;     // empty if not all of it was durable
};

}  // namespace attune::sim
