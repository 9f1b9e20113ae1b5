#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "simulator/curves.h"
#include "simulator/timeline.h"
#include "tests/sim/ask_tell_client.h"
#include "tests/sim/checkers/checkers.h"
#include "tests/sim/checkers/promises.h"
#include "tests/sim/people.h"
#include "tests/sim/plan.h"
#include "tests/sim/service/disk.h"
#include "tests/sim/service/host.h"
#include "tests/sim/service/network.h"
#include "tests/sim/service/server_host.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// Simulates a whole service on one thread, in virtual time, from one seed: server, executors,
// gangs, users and faults. The faults stop after some time. The world then runs until every sweep
// has ended.
class World final : private ServerObserver {
 public:
  World(const Plan& plan, Disk& disk, Variant variant);

  // Runs to the end, or to the first finding.
  void Run();

  const std::optional<std::string>& finding() const { return findings_.first(); }
  const std::vector<Event>& log() const { return log_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const State* state() const { return server_.state(); }
  Findings& findings() { return findings_; }
  const std::string& snapshot() const { return snapshot_; }  // of a state in the middle of the log
  EventSeq snapshot_seq() const { return snapshot_seq_; }
  Time now() const { return timeline_.now(); }

 private:
  void OnDurable(std::span<const Event> events) override;
  void OnInputs(std::vector<Input> inputs) override;
  void OnRecovered(const std::string& before, const std::string& after) override;
  bool OnRestore() override;

  void Populate();
  void CreateSweepOf(const PlannedSweep& planned);
  void BackUp();
  void NoteLostFiles(const Event& event);
  void RereadLog();
  void ScheduleFaults();
  void RepeatAtRandom(double per_minute, std::function<void()> act);
  void WithRandomExecutor(const std::function<void(Host&)>& act);
  bool IsGone(const Host& executor) const;
  void RestartLater(Host& executor);
  void StartProcess(Host& executor);
  void RunQuietMinute();
  bool IsOver() const;
  std::string UnfinishedWork() const;
  const PlannedSweep& PlannedOf(SweepId sweep);
  double ValueOf(const TrialId& trial, const Config& config, Step step);
  std::optional<Ending> PlannedEndingOf(const TrialId& trial);

  const Plan& plan_;
  Disk& disk_;
  FaultRates faults_;
  simulate::Timeline timeline_;
  RandomStream random_;
  Findings findings_;
  Books books_;
  Reality reality_{findings_};
  Promises promises_{books_, findings_};
  std::vector<std::unique_ptr<Checker>> checkers_;
  Network network_;
  ServerHost server_;
  People people_;
  Environment environment_;
  std::vector<std::unique_ptr<Host>> executors_;
  std::vector<std::unique_ptr<AskTellClient>> clients_;
  std::map<SweepId, const PlannedSweep*> planned_;
  std::map<SweepId, std::unique_ptr<simulate::Curves>> curves_;

  bool quiet_ = false;
  bool over_ = false;
  std::vector<Event> log_;
  std::vector<Input> inputs_;
  std::string snapshot_;
  EventSeq snapshot_seq_;

  // The number of events and inputs at the time of a backup.
  struct Backup {
    size_t events = 0;
    size_t inputs = 0;
  };
  std::optional<Backup> backup_;
};

}  // namespace attune::sim
