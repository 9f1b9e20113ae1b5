#pragma once

#include <string>
#include <utility>

#include "core/log/event.h"
#include "tests/sim/checkers/books.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/reality.h"

namespace attune::sim {

// What checkers judge by.
struct Evidence {
  const Books& books;
  const Reality& reality;
  Findings& findings;
};

// One rule that must hold in every world, judged by the log and by what really runs; core's state
// has no part in it.
class Checker {
 public:
  explicit Checker(const Evidence& evidence)
      : books_(evidence.books), reality_(evidence.reality), findings_(evidence.findings) {}
  virtual ~Checker() = default;

  // Every durable event, before the books have it.
  virtual void OnEvent(const Event&) {}
  // After the last event of a batch: nothing more follows from it.
  virtual void OnBatch() {}
  // Nothing has gone wrong for a minute or more.
  virtual void OnQuietMinute(Time) {}
  // Once faults have ceased and everything has come to its end.
  virtual void AtEnd() {}

 protected:
  void Find(std::string what) { findings_.Report(std::move(what)); }

  const Books& books_;
  const Reality& reality_;

 private:
  Findings& findings_;
};

}  // namespace attune::sim
