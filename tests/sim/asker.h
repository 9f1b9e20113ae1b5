#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulator/worker.h"
#include "tests/sim/checkers/reality.h"
#include "tests/sim/people.h"

namespace attune::sim {

// A program of somebody's that asks a sweep without a program for trials, one after the other, and
// tells how they go: some ask for the next one in the request that tells. It may lose interest in
// the middle of one.
class Asker {
 public:
  struct Stage {
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

  // Asks for the sweep that was made with this key, once it is there.
  Asker(Stage stage, std::string sweep_key, std::string name)
      : stage_(std::move(stage)), sweep_key_(std::move(sweep_key)), name_(std::move(name)) {}

  void Begin();
  void LoseInterest() { gone_ = true; }
  // A backup was restored: what it has asked for and told may be lost, and its sweep may get
  // another number.
  void BeginAnew() {
    gone_ = true;
    sweep_ = {};
    Return();
  }
  void Return();  // and asks anew: nobody tidies up what it had left but its lease

 private:
  void Ask();
  AskTrial Question(int number) const;
  bool Adopt(const std::string& key);
  void Train();
  void Tell();
  void Told();
  void After(int64_t us, simulate::Timeline::Action action);
  const Trial* Mine() const;  // null when the attempt is not live, or the server is away

  Stage stage_;
  std::string sweep_key_;
  std::string name_;
  int asked_ = 0;      // the number of its newest question: each has a key of its own
  int forgotten_ = 0;  // the first of those
  bool gone_ = false;
  uint64_t life_ = 0;  // counts its returns: what was begun before is not gone on with

  SweepId sweep_;
  AttemptId attempt_;
  Epoch epoch_;
  simulate::Worker worker_;
  simulate::Orders orders_;
  double seconds_ = 0;
};

}  // namespace attune::sim
