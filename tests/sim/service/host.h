#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/agent/machine.h"
#include "tests/sim/service/gangs.h"
#include "tests/sim/service/surroundings.h"

namespace attune::sim {

// A host with its executor: the agent's machine, as it is, between a network, a clock and gangs
// that are made up.
class Host final : public ExecutorEnd, private agent::ServerLink, private agent::Files {
 public:
  Host(Surroundings& surroundings, std::string name, PlannedHost planned)
      : around_(surroundings), name_(std::move(name)), planned_(std::move(planned)) {}

  // A new process, which has so long; 0: as long as nothing befalls it. REQUIRES: none is there.
  void Start(int64_t lives_us);
  void Crash();  // the process and its gangs are gone
  // Says goodbye and exits: its gangs have so long to save and leave, then they are torn down.
  void Leave(std::chrono::milliseconds grace);
  void Freeze();  // nothing on this host moves until Thaw
  void Thaw();
  void SetUnhealthy(bool unhealthy);  // whether it says that it has a problem

  // As TrainingGangs has it. What was said before is no promise: an acknowledgement of the process
  // before may still be on its way.
  void MarkLost(const std::function<bool(const gang::AttemptId&)>& is_known) {
    said_.clear();
    if (gangs_ != nullptr) gangs_->MarkLost(is_known);
  }

  bool up() const { return machine_ != nullptr; }
  bool frozen() const { return frozen_; }
  bool leaving() const { return leaving_; }
  bool unhealthy() const { return unhealthy_; }
  uint64_t process() const { return process_; }  // counts them
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
  void LookFor(const v1::Inventory& inventory) override;
  void ReadLog(const v1::LogRequest& request) override;
  void Deliver(const v1::CheckpointRequest&) override {}

  v1::Hello Hello() const;
  agent::Now Now() const;
  // Runs unless this process is gone by then; once the host moves again, if it stands still.
  void After(int64_t us, simulate::Timeline::Action action);
  void StepSoon();
  void Step();
  void HandInFacts();
  void NoteDisk(const gang::Fact& fact);
  void TellHealth();
  void Exit();
  void KeepFacts(v1::Facts& facts);
  void Acknowledged(uint64_t seq);

  Surroundings& around_;
  const std::string name_;
  const PlannedHost planned_;

  // Of the process that is there.
  uint64_t process_ = 0;
  int64_t started_us_ = 0;
  std::unique_ptr<TrainingGangs> gangs_;
  std::unique_ptr<agent::Machine> machine_;
  std::vector<gang::Fact> facts_;  // that the machine has not been told yet
  bool step_soon_ = false;
  gang::BootClock::time_point step_at_ = agent::Machine::kNever;
  std::set<std::string> removals_;  // under way or done, by path
  std::set<uint64_t> sweep_removals_;
  uint64_t removals_wanted_ = 0;  // counts how often all of them were forgotten
  std::deque<v1::Fact> said_;     // and not acknowledged
  uint64_t said_seq_ = 0;

  bool leaving_ = false;
  bool unhealthy_ = false;
  int disk_shortages_ = 0;  // that have not passed
  bool frozen_ = false;
  Time frozen_at_;
  int64_t slept_us_ = 0;                              // that its clock has missed
  std::vector<simulate::Timeline::Action> deferred_;  // while it stands still
  std::optional<StreamId> stream_;
};

}  // namespace attune::sim
