#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/log/event.h"
#include "tests/sim/checkers/books.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/service/surroundings.h"

namespace attune::sim {

// What anybody was told must be in the log, then and at the end: answers to people, what executors
// are told to run, and the facts of theirs that were acknowledged.
class Promises final : public Witness {
 public:
  Promises(const Books& books, Findings& findings) : books_(books), findings_(findings) {}

  void OnDurable(const Event& event);
  // The log ends with this event again: what was told of later ones is no promise any more. The log
  // up to there follows, as OnDurable.
  void OnRestored(EventSeq last);
  void OnAnswered(std::span<const Event> events);
  void OnAcknowledged(const std::string& executor, const v1::Fact& fact) override;
  void OnAssigned(const v1::Assignment& assignment) override;
  void AtEnd(std::span<const Event> log);

 private:
  void Reported(const AttemptId& attempt, Step step);

  const Books& books_;
  Findings& findings_;
  std::map<EventSeq, std::string> answered_;
  std::map<Epoch, AttemptId> epochs_;
  std::set<std::pair<Epoch, AttemptId>> on_their_way_;  // perhaps, from a log before a restore
  std::set<Epoch> told_;                                // those that executors were told to run
  std::set<std::pair<AttemptId, Step>> reports_;
};

}  // namespace attune::sim
