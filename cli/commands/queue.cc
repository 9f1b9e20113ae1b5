#include "cli/commands/command.h"
#include "cli/views/fleet_view.h"

namespace attune::cli {
namespace {

constexpr int kLimitDefault = 100;
constexpr int kLimitMax = 500;

struct QueueFlags : ClientFlags {
  int limit = kLimitDefault;

  void AddTo(CLI::App& command) {
    command.add_option("--limit", limit, "Maximum number of lines")
        ->check(CLI::Range(1, kLimitMax))
        ->type_name("N")
        ->capture_default_str();
    ClientFlags::AddTo(command);
  }
};

ExitCode ShowQueue(const QueueFlags& flags, Console& console, Api& api) {
  return ShowAnswer(flags.output, console, api.Queue(flags.limit), [&](const rest::Queue& queue) {
    if (queue.gangs.empty()) return console.err.Print("nothing waits");
    console.out.PrintLines(QueueTable(queue.gangs, console.out.style(), console.out.width()));
    const int64_t others = queue.total_size - std::ssize(queue.gangs);
    if (others > 0) console.err.Print("and " + std::to_string(others) + " more; see --limit");
  });
}

}  // namespace

void AddQueueCommand(CLI::App& app, Action& chosen) {
  AddCommand<QueueFlags>(app, chosen, "queue", "List the trials of all sweeps that wait, in order",
                         ShowQueue);
}

}  // namespace attune::cli
