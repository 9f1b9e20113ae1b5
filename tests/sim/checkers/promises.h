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
#include "tests/sim/service/environment.h"

namespace attune::sim {

// Checks that everything the server tells is in the log, at once and at the end: answers to users,
// assignments to executors, and acknowledged facts of executors.
class Promises final : public Witness {
 public:
  Promises(const Books& books, Findings& findings) : books_(books), findings_(findings) {}

  void OnDurable(const Event& event);
  // Must be called after a restore. Answers about events after `last` no longer count. The caller
  // then passes all events of the restored log to OnDurable.
  void OnRestored(EventSeq last);
  void OnAnswered(std::span<const Event> events);
  void OnAcknowledged(const std::string& executor, const v1::Fact& fact) override;
  void OnAssigned(const v1::Assignment& assignment) override;
  void AtEnd(std::span<const Event> log);

 private:
  void CheckAcknowledgedReport(const AttemptId& attempt, Step step);

  const Books& books_;
  Findings& findings_;
  std::map<EventSeq, std::string> answered_;
  std::map<Epoch, AttemptId> epochs_;
  std::set<std::pair<Epoch, AttemptId>>
      in_flight_;         // assignments from before a restore that may still arrive
  std::set<Epoch> told_;  // epochs that executors were told to run
  std::set<std::pair<AttemptId, Step>> reports_;
};

}  // namespace attune::sim
