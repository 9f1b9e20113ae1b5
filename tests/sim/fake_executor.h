#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/simulate/curves.h"
#include "cli/simulate/timeline.h"
#include "cli/simulate/worker.h"
#include "core/base/random.h"
#include "tests/sim/network.h"
#include "tests/sim/plan.h"
#include "tests/sim/protocol.h"
#include "tests/sim/reality.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// Told when an executor takes something for settled, to check that it may.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void OnAcknowledged(const Command& fact) = 0;
  virtual void OnAssigned(const Assignment& assignment) = 0;
};

// What an executor stands in.
struct Surroundings {
  simulate::Timeline& timeline;
  RandomStream& random;
  Network& network;
  Reality& reality;
  Witness& witness;
  const FaultRates& faults;
  int64_t step_us;
  std::function<double(const TrialId&, const Config&, Step)> value;
  Variant variant;
};

// A host with its executor: the rules of executor/agent, without threads, processes and gRPC, and
// gangs that train by a curve.
class FakeExecutor final : public ExecutorEnd {
 public:
  FakeExecutor(Surroundings& surroundings, std::string name, Resources resources)
      : around_(surroundings), name_(std::move(name)), resources_(resources) {}

  void Start();   // a new process. REQUIRES: none is there
  void Crash();   // the process and its gangs are gone
  void Leave();   // says goodbye, tears its gangs down and exits
  void Freeze();  // nothing on this host moves until Thaw
  void Thaw();

  bool up() const { return up_; }
  bool frozen() const { return frozen_; }
  std::optional<StreamId> stream() const { return stream_; }
  const std::string& name() const { return name_; }

  void OnMessage(StreamId stream, ToExecutor message) override;
  void OnClosed(StreamId stream) override;

 private:
  enum class Phase { kStarting, kRunning, kEnding };
  struct Gang {
    Assignment assignment;
    simulate::Worker worker;
    Phase phase = Phase::kStarting;
    bool stepped = false;
    double seconds = 0;
  };

  // Runs unless this process is gone by then; once the host moves again, if it stands still.
  void After(int64_t us, simulate::Timeline::Action action);
  // Runs if the gang is there by then and still in the phase that it is in now.
  void ForGang(const Gang& gang, int64_t us, std::function<void(Gang&)> act);

  void Connect();
  void Reconnect();
  void On(const Welcome& welcome);
  void On(const Refusal& refusal);
  void On(const Ack& ack);
  void On(Desired& desired);
  void Beat();
  void RenewLease(Time sent);
  void CheckLease();
  void LoseLease();

  void Add(Command fact);
  void Pump();
  void Exit();

  void Reconcile();
  void CancelAll(FailureKind why);
  bool MayStart(const Assignment& assignment) const;
  void StartGang(const Assignment& assignment);
  void Launched(Gang& gang);
  void Train(Gang& gang);
  void Step(Gang& gang);
  void Say(Gang& gang);
  void Obey(Gang& gang);
  void End(Gang& gang, Outcome outcome, Failure failure);
  void Delete(const Removal& removal);
  bool Happens(double rate) { return rate > 0 && around_.random.Uniform() < rate; }

  Surroundings& around_;
  const std::string name_;
  const Resources resources_;

  bool up_ = false;
  bool frozen_ = false;
  bool leaving_ = false;
  uint64_t process_ = 0;                              // counts them; part of the instance
  std::vector<simulate::Timeline::Action> deferred_;  // while it stands still

  std::optional<StreamId> stream_;
  bool welcomed_ = false;
  bool pumping_ = false;
  bool retrying_ = false;
  uint64_t revision_ = 0;
  Time hello_sent_;
  Time lease_until_;
  bool has_lease_ = false;
  bool watching_lease_ = false;

  std::deque<NumberedFact> outbox_;
  size_t sent_ = 0;  // of outbox_, by the present connection
  uint64_t last_fact_ = 0;

  std::map<Epoch, Assignment> wanted_;
  std::map<Epoch, Gang> gangs_;
  std::map<Epoch, TrialId> ended_;  // not to be started again
  std::set<CheckpointId> removed_;
};

}  // namespace attune::sim
