#pragma once

#include <string>
#include <utility>

#include "core/log/event.h"
#include "tests/sim/checkers/books.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/reality.h"

namespace attune::sim {

// The data that checkers use.
struct Evidence {
  const Books& books;
  const Reality& reality;
  Findings& findings;
};

// One rule that must hold in every world. A checker uses the log and the running gangs, never
// core's state.
class Checker {
 public:
  explicit Checker(const Evidence& evidence)
      : books_(evidence.books), reality_(evidence.reality), findings_(evidence.findings) {}
  virtual ~Checker() = default;

  // Called with every durable event, before the books record it.
  virtual void OnEvent(const Event&) {}
  // Called after the last event of a batch, when the server has nothing more to decide.
  virtual void OnBatch() {}
  // Called once a minute after the faults have stopped.
  virtual void OnQuietMinute(Time) {}
  // Called at the end of the world, when every sweep has ended.
  virtual void AtEnd() {}

 protected:
  void Report(std::string finding) { findings_.Report(std::move(finding)); }

  const Books& books_;
  const Reality& reality_;

 private:
  Findings& findings_;
};

}  // namespace attune::sim
