#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/agent/fetching_gangs.h"
#include "executor/agent/machine.h"
#include "tests/sim/service/environment.h"
#include "tests/sim/service/gangs.h"

namespace attune::sim {

// A host with its executor: the real state machine of the agent, with a simulated network, clock
// and gangs.
class Host final : public ExecutorEnd, private agent::ServerLink, private agent::Files {
 public:
  Host(Environment& environment, std::string name, PlannedHost planned)
      : environment_(environment), name_(std::move(name)), planned_(std::move(planned)) {}

  // Starts a process with this lifetime; 0: unlimited. REQUIRES: no process is running.
  void Start(int64_t lifetime_us);
  void Crash();  // ends the process and its gangs
  // Says goodbye and exits. The gangs have `grace` to save and leave; then they are torn down.
  void Leave(std::chrono::milliseconds grace);
  void Freeze();  // stops everything on this host until Thaw
  void Thaw();
  void SetUnhealthy(bool unhealthy);  // reports a problem, or its end

  // See TrainingGangs::MarkLost. Facts from before the restore are not checked any more, because an
  // acknowledgement of the old server process may still arrive.
  void MarkLost(const std::function<bool(const gang::AttemptId&)>& is_known) {
    unacknowledged_.clear();
    if (gangs_ != nullptr) gangs_->MarkLost(is_known);
  }

  bool up() const { return machine_ != nullptr; }
  bool frozen() const { return frozen_; }
  bool leaving() const { return leaving_; }
  bool unhealthy() const { return unhealthy_; }
  uint64_t process() const { return process_; }  // number of the current one
  std::optional<StreamId> stream() const { return stream_; }
  const std::string& name() const { return name_; }
  const PlannedHost& planned() const { return planned_; }

  void OnMessage(StreamId stream, v1::ToExecutor message) override;
  void OnClosed(StreamId stream) override;

 private:
  void Connect() override;
  void Write(v1::FromExecutor message) override;
  void Close() override;
  void Remove(const agent::Removals& removals) override;
  void FindMissing(const v1::Inventory& inventory) override;
  void ReadLog(const v1::LogRequest& request) override;
  void SendCheckpoint(const v1::CheckpointRequest&) override {}
  void Upload(const v1::Uploads&) override {}  // see StoreLater

  void MakeGangs();
  void FetchLater(const std::string& name,
                  const std::function<void(const agent::Fetched&)>& deliver);
  void BuildLater(const gang::AttemptId& attempt);
  void AfterFetch(int64_t us, std::function<void()> deliver);
  v1::Hello Hello() const;
  agent::Now Now() const;
  // Runs `action` later if the process still exists at that time. A frozen host delays it.
  void ScheduleAfter(int64_t us, simulate::Timeline::Action action);
  void StepSoon();
  void Step();
  void PassFacts();
  void ReportFullDisk(const gang::Fact& fact);
  void StoreLater(const gang::AttemptId& attempt, const gang::CheckpointSaved& saved);
  void SendHealth();
  void Exit();
  void KeepFacts(v1::Facts& facts);
  void HandleAck(uint64_t seq);

  Environment& environment_;
  const std::string name_;
  const PlannedHost planned_;

  // State of the current process.
  uint64_t process_ = 0;
  int64_t started_us_ = 0;
  std::unique_ptr<TrainingGangs> gangs_;
  std::unique_ptr<agent::FetchingGangs> fetching_gangs_;
  std::unique_ptr<agent::Machine> machine_;
  std::vector<gang::Fact> facts_;  // facts that the machine does not know yet
  bool step_soon_ = false;
  gang::BootClock::time_point step_at_ = agent::Machine::kNever;
  std::set<std::string> removals_;  // paths of checkpoints whose removal has started or finished
  std::set<uint64_t> sweep_removals_;
  uint64_t removal_round_ = 0;           // number of times that all removals were dropped
  std::deque<v1::Fact> unacknowledged_;  // facts that were sent
  uint64_t last_sent_seq_ = 0;

  bool leaving_ = false;
  bool unhealthy_ = false;
  int disk_shortages_ = 0;  // current number
  bool frozen_ = false;
  Time frozen_at_;
  int64_t slept_us_ = 0;                              // time that its clock has missed
  std::vector<simulate::Timeline::Action> deferred_;  // while it is frozen
  std::optional<StreamId> stream_;
};

}  // namespace attune::sim
