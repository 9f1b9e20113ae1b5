#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "simulator/timeline.h"
#include "tests/sim/checkers/books.h"
#include "tests/sim/checkers/promises.h"
#include "tests/sim/service/server_host.h"

namespace attune::sim {

// Simulated users and their programs. They repeat a request until the server answers.
class People {
 public:
  People(simulate::Timeline& timeline, RandomStream& random, ServerHost& server, const Books& books,
         Promises& promises, bool edit, bool annotate)
      : timeline_(timeline),
        random_(random),
        server_(server),
        books_(books),
        promises_(promises),
        edit_(edit),
        annotate_(annotate) {}

  // Repeats a command, with the same idempotency key, until the server answers. Calls `then` with
  // whether the server accepted it; for several commands in one request, the last one counts.
  void SubmitUntilAnswered(Command command, std::function<void(bool accepted)> then = {});
  void SubmitUntilAnswered(std::vector<Command> commands, std::function<void(bool accepted)> then);

  // Sends a random command about any sweep or trial, once.
  void DoRandomAction();

  // Drains or resumes a random executor. Sends the command once.
  void DrainOrResumeRandomExecutor();

  // Must be called after a restore from a backup. Drops commands that wait to be sent, because
  // their sweeps and trials may no longer exist.
  void DropPendingActions() { ++generation_; }

  // Resumes all paused sweeps and drained executors, so that every sweep can end.
  void ResumeEverything();

 private:
  void SubmitUntilAnswered(const std::vector<Command>& commands,
                           const std::function<void(bool accepted)>& then,
                           const std::shared_ptr<bool>& answered);
  void SubmitOnce(Command command);
  std::optional<Command> DrawAction();
  std::optional<Command> DrawActionOn(const SweepBook& sweep);
  std::optional<Command> DrawActionOn(const TrialBook& trial);
  Command DrawAnnotation(const SweepBook& sweep);
  EditSweep DrawEdit(const SweepBook& sweep);
  SearchSpace DrawRanges(const SearchSpace& space);
  int64_t Integer(int64_t low, int64_t high) { return random_.Integer(low, high); }

  simulate::Timeline& timeline_;
  RandomStream& random_;
  ServerHost& server_;
  const Books& books_;
  Promises& promises_;
  const bool edit_;
  const bool annotate_;
  int keys_ = 0;
  int generation_ = 0;
};

}  // namespace attune::sim
