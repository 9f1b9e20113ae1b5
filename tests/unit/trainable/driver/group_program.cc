// The driver program of the tests, with groups of workers. It prints its results.

#include <attune/worker_group.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/trainable/driver/group_modes.h"

namespace group {
namespace {

using std::chrono_literals::operator""ms;

// Two pipes that all workers share with the driver.
int to_driver[2];
int to_workers[2];

class Notes {
 public:
  explicit Notes(const attune::Worker& worker, std::string name = "notes")
      : worker_(worker), name_(std::move(name)) {}

  std::string Name() const { return name_ + " " + std::to_string(worker_.index); }
  int Pid() const { return getpid(); }
  void Write(int note) { notes_.push_back(note); }
  std::vector<int> Read() const { return notes_; }

  int Fail(int worker) {
    if (worker_.index == worker) throw std::runtime_error("a teapot");
    return worker_.index;
  }

  // Returns only after both workers have called it.
  int MeetOther() {
    if (worker_.index == 0) {
      SendToDriver('0');
      char byte = 0;
      if (read(to_workers[0], &byte, 1) != 1) throw std::runtime_error("alone");
    } else {
      if (AwaitByte() != '0' || write(to_workers[1], "1", 1) != 1)
        throw std::runtime_error("alone");
    }
    return worker_.index;
  }

  void Hang() {
    SendToDriver('h');
    while (true) pause();
  }
  void Leave(int worker) {
    if (worker_.index == worker) std::exit(0);
  }
  void Stop(int worker) {
    if (worker_.index == worker) raise(SIGSTOP);
    Hang();
  }

 private:
  const attune::Worker worker_;
  const std::string name_;
  std::vector<int> notes_;
};

struct FailingConstructor {
  explicit FailingConstructor(const attune::Worker& worker) {
    if (worker.index == 1) throw std::runtime_error("no dataset /data/none");
  }
};

// Returns the result of the future, or the failed worker and the error.
template <typename R>
std::string Outcome(std::future<R> future) {
  try {
    if constexpr (std::is_void_v<R>) {
      future.get();
      return "done";
    } else if constexpr (std::is_arithmetic_v<R>) {
      return std::to_string(future.get());
    } else {
      return future.get();
    }
  } catch (const attune::WorkerError& error) {
    return std::string(error.lost() ? "lost " : "threw ") + std::to_string(error.worker()) + ": " +
           error.what();
  }
}

template <typename R>
void Print(std::vector<std::future<R>> futures) {
  for (auto& future : futures) std::cout << Outcome(std::move(future)) << std::endl;
}

template <typename F>
void PrintError(F&& what) {
  try {
    what();
    std::cout << "no error" << std::endl;
  } catch (const attune::WorkerError& error) {
    std::cout << "worker " << error.worker() << ", " << error.what() << std::endl;
  } catch (const attune::Error& error) {
    std::cout << error.what() << std::endl;
  }
}

// Prints the results of outstanding calls and of a later one.
void PrintEndOfGroup(attune::WorkerGroup<Notes>& group,
                     std::vector<std::future<void>> outstanding) {
  Print(std::move(outstanding));
  std::cout << "later: " << Outcome(group.CallOne<&Notes::Name>(0)) << std::endl;
  PrintError([&] { group.Shutdown(); });
}

}  // namespace

void SendToDriver(char what) {
  if (write(to_driver[1], &what, 1) != 1) std::abort();
}

char AwaitByte() {
  char what = 0;
  if (read(to_driver[0], &what, 1) != 1) std::abort();
  return what;
}

void Calls() {
  attune::WorkerGroup<Notes> group(3, "book");
  Print(group.Call<&Notes::Name>());
  for (int note = 0; note < 100; ++note) group.CallOne<&Notes::Write>(1, note);
  const std::vector<int> notes = group.CallOne<&Notes::Read>(1).get();
  bool in_order = notes.size() == 100;
  for (int note = 0; in_order && note < 100; ++note) in_order = notes[note] == note;
  std::cout << "in order: " << in_order << std::endl;
  std::cout << "other worker: " << group.CallOne<&Notes::Read>(2).get().size() << std::endl;
  Print(group.Call(
      [](Notes& notes_of, const std::string& greeting, int number) {
        return greeting + " " + notes_of.Name() + " " + std::to_string(number);
      },
      "hello", 7));
}

void Parallel() {
  attune::WorkerGroup<Notes> group(2);
  Print(group.Call<&Notes::MeetOther>());
}

void Throws() {
  attune::WorkerGroup<Notes> group(2);
  Print(group.Call<&Notes::Fail>(1));
  Print(group.Call([](Notes&) { throw 7; }));
  Print(group.Call<&Notes::Name>());
}

void Constructor() {
  PrintError([] { attune::WorkerGroup<FailingConstructor> group(3); });
}

void Killed() {
  attune::WorkerGroup<Notes> group(3);
  const int pid = group.CallOne<&Notes::Pid>(1).get();
  auto hanging = group.Call<&Notes::Hang>();
  for (int i = 0; i < group.size(); ++i) AwaitByte();
  kill(pid, SIGKILL);
  PrintEndOfGroup(group, std::move(hanging));
}

void Exits() {
  attune::WorkerGroup<Notes> group(2);
  PrintEndOfGroup(group, group.Call<&Notes::Leave>(1));
}

void Stopped() {
  attune::WorkerGroup<Notes> group({.num_workers = 2, .stall_timeout = 300ms});
  PrintEndOfGroup(group, group.Call<&Notes::Stop>(1));
}

void Hangs() {
  attune::WorkerGroup<Notes> group(2);
  auto hanging = group.Call<&Notes::Hang>();
  for (int i = 0; i < group.size(); ++i) AwaitByte();
  std::cout << "hanging" << std::endl;
  attune::GetAll(std::move(hanging));
}

void TwoGroups() {
  attune::WorkerGroup<Notes> first(2, "first");
  attune::WorkerGroup<Notes> second(2, "second");
  auto hanging = first.Call<&Notes::Hang>();
  for (int i = 0; i < first.size(); ++i) AwaitByte();
  Print(second.Call<&Notes::Name>());
  first.Shutdown(/*force=*/true);
  Print(std::move(hanging));
  Print(second.Call<&Notes::Name>());
}

void Workers() {
  const attune::WorkerGroupOptions options{.num_workers = 2,
                                           .config = attune::Config({{"width", std::int64_t{8}}}),
                                           .seed = 5,
                                           .initialization_hook = [](const attune::RankInfo& rank) {
                                             setenv("GROUP_HOOK",
                                                    std::to_string(rank.world_size).c_str(), 1);
                                           }};
  struct Place {
    explicit Place(const attune::Worker& the_worker) : worker(the_worker) {}
    const attune::Worker& worker;
  };
  attune::WorkerGroup<Place> group(options);
  Print(group.Call([](Place& place) {
    const attune::Worker& worker = place.worker;
    const attune::Context& context = worker.context;
    return std::to_string(worker.index) + " of " + std::to_string(worker.size) + ", rank " +
           std::to_string(context.rank()) + " of " + std::to_string(context.world_size()) + " on " +
           context.device().str() + ", width " + std::to_string(context.config().Int("width")) +
           ", hook " + std::getenv("GROUP_HOOK") + ", args " + context.args().at(0);
  }));
  const auto seed = [](Place& place) { return place.worker.context.seed(); };
  const auto seeds = attune::GetAll(group.Call(seed));
  attune::WorkerGroup<Place> again(options);
  std::cout << "seeds differ: " << (seeds[0] != seeds[1])
            << ", repeatable: " << (attune::GetAll(again.Call(seed)) == seeds) << std::endl;
}

void Misuse() {
  PrintError([] { attune::WorkerGroup<Notes> group(0); });
  PrintError([] { attune::WorkerGroup<Notes> group({.cpus_per_worker = 0}); });
  PrintError([] { attune::WorkerGroup<Notes> group({.seed = std::uint64_t{1} << 53}); });
  PrintError([] { attune::WorkerGroup<Notes> group({.num_workers = 1000, .use_gpu = true}); });
  attune::WorkerGroup<Notes> group(1);
  PrintError([&] { group.CallOne<&Notes::Name>(1); });
  PrintError([&] { group.CallOne<&Notes::Name>(-1); });
  auto last = group.CallOne<&Notes::Name>(0);
  group.Shutdown();
  std::cout << "before the shutdown: " << last.get() << ", size " << group.size() << std::endl;
  PrintError([&] { group.Call<&Notes::Name>(); });
  PrintError([&] { group.CallOne<&Notes::Name>(0); });
  PrintError([] { attune::Init(0, nullptr); });
}

}  // namespace group

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> modes = {
      {"averages", group::Averages},
      {"averages_of_modules", group::AveragesOfModules},
      {"with_a_trainer", group::WithATrainer},
      {"calls", group::Calls},
      {"constructor", group::Constructor},
      {"docs", group::Docs},
      {"exits", group::Exits},
      {"hangs", group::Hangs},
      {"killed", group::Killed},
      {"large", group::Large},
      {"misuse", group::Misuse},
      {"parallel", group::Parallel},
      {"stopped", group::Stopped},
      {"throws", group::Throws},
      {"round_trips", group::RoundTrips},
      {"two_groups", group::TwoGroups},
      {"workers", group::Workers},
  };
  const auto mode = modes.find(argc > 1 ? argv[1] : "");
  if (mode == modes.end()) {
    std::cerr << "driver program: no such mode\n";
    return 2;
  }
  if (pipe(group::to_driver) != 0 || pipe(group::to_workers) != 0) return 2;
  attune::Init(argc, argv);
  mode->second();
}
