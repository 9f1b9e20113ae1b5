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

// People and their programs, who ask the server over and over until it answers.
class People {
 public:
  People(simulate::Timeline& timeline, RandomStream& random, ServerHost& server, const Books& books,
         Promises& promises, bool edit)
      : timeline_(timeline),
        random_(random),
        server_(server),
        books_(books),
        promises_(promises),
        edit_(edit) {}

  // Asked again until there is an answer, with the same key where there is one. `then` is told
  // whether it was accepted; of several that come in one request, whether the last was.
  void Insist(Command command, std::function<void(bool accepted)> then = {});
  void Insist(std::vector<Command> commands, std::function<void(bool accepted)> then);

  // Something that a person may take into their head, of any sweep or trial. Not insisted on.
  void DoSomething();

  // Some executor is drained or resumed. Not insisted on either.
  void DrainSomething();

  // A backup was restored: what they were about to ask is about what is no more.
  void Forget() { ++life_; }

  // What was paused or drained goes on, so that it can come to its end.
  void Tidy();

 private:
  void Insist(const std::vector<Command>& commands, const std::function<void(bool accepted)>& then,
              const std::shared_ptr<bool>& answered);
  void Ask(Command command);  // once
  std::optional<Command> Whim();
  std::optional<Command> WhimAbout(const SweepBook& sweep);
  std::optional<Command> WhimAbout(const TrialBook& trial);
  EditSweep Edit(const SweepBook& sweep);
  SearchSpace OtherRanges(const SearchSpace& space);
  int64_t Integer(int64_t low, int64_t high) { return random_.Integer(low, high); }

  simulate::Timeline& timeline_;
  RandomStream& random_;
  ServerHost& server_;
  const Books& books_;
  Promises& promises_;
  const bool edit_;
  int keys_ = 0;
  int life_ = 0;
};

}  // namespace attune::sim
