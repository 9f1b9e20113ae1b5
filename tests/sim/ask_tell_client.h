#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/worker.h"
#include "tests/sim/checkers/reality.h"
#include "tests/sim/people.h"

namespace attune::sim {

// A user's program that runs the trials of a sweep without a command over the ask/tell API: it asks
// for a trial, reports its values, and asks for the next one. Some clients send a report and the
// next request together. A client may go away in the middle of a trial.
class AskTellClient {
 public:
  struct Context {
    simulate::Timeline& timeline;
    RandomStream& random;
    ServerHost& server;
    const Books& books;
    Reality& reality;
    People& people;
    int64_t step_us;
    std::function<double(const TrialId&, const Config&, Step)> value;
    bool asks_with_tell;
  };

  // The client uses the sweep that was created with `sweep_key`. It waits until the sweep exists.
  AskTellClient(Context context, std::string sweep_key, std::string name)
      : context_(std::move(context)), sweep_key_(std::move(sweep_key)), name_(std::move(name)) {}

  void Start();
  void GoAway() { away_ = true; }
  // Must be called after a restore from a backup: requests and reports of this client may be lost,
  // and its sweep may get another id.
  void StartOver() {
    away_ = true;
    sweep_ = {};
    ComeBack();
  }
  // Returns after GoAway and asks for a new trial. The trial that it left ends when its lease ends.
  void ComeBack();

 private:
  void Ask();
  AskTrial RequestFor(int number) const;
  bool AdoptAttempt(const std::string& key);
  void Train();
  void Report();
  void HandleAnswer();
  void ScheduleAfter(int64_t us, simulate::Timeline::Action action);
  const Trial* LiveTrial() const;  // null if the attempt is not live or the server is down

  Context context_;
  std::string sweep_key_;
  std::string name_;
  int requests_ = 0;   // number of its newest request; each request has a different key
  int forgotten_ = 0;  // requests up to this number were sent before it went away
  bool away_ = false;
  uint64_t generation_ = 0;  // number of returns; actions of earlier generations are dropped

  SweepId sweep_;
  AttemptId attempt_;
  Epoch epoch_;
  simulate::Worker worker_;
  simulate::Orders orders_;
  double trained_seconds_ = 0;
};

}  // namespace attune::sim
