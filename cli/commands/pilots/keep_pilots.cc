#include "cli/commands/pilots/keep_pilots.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <utility>

#include "cli/client/api.h"
#include "cli/client/event_stream.h"
#include "cli/commands/pilots/pilot_commands.h"
#include "cli/commands/pilots/situation.h"
#include "cli/page_link.h"
#include "cli/views/pilots_view.h"
#include "pilots/manager.h"
#include "pilots/names.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Minimum time between two rounds because of events.
constexpr std::chrono::milliseconds kDemandPeriod{100};

// Wakes a thread up if the user wants to end, or if a trial may have begun to wait.
class Wakeup {
 public:
  void Notify(bool demand) {
    const std::lock_guard lock(mutex_);
    notified_ = true;
    demand_ = demand_ || demand;
    changed_.notify_all();
  }

  // Waits for a notification, but not longer than until `deadline`.
  void WaitUntil(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return notified_; });
    notified_ = false;
  }

  // Returns whether a trial may have begun to wait since the last call.
  bool TakeDemand() {
    const std::lock_guard lock(mutex_);
    return std::exchange(demand_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool notified_ = false;
  bool demand_ = false;
};

bool CanChangeDemand(std::string_view event) {
  return event.starts_with("sweep_") || event.starts_with("executor_") ||
         event == "trial_created" || event == "trial_changed";
}

// Runs the manager every `poll`, and for new demand, until Ctrl-C or `down`.
void RunManager(pilots::Manager& manager, const Fleet& fleet, Console& console) {
  Wakeup wakeup;
  const Interrupt::Subscription subscription(console.interrupt, [&] { wakeup.Notify(false); });
  const EventStream events(fleet.server.endpoint, "", std::nullopt,
                           {.on_open = [&](bool) { wakeup.Notify(true); },
                            .on_event =
                                [&](const ServerEvent& event) {
                                  if (CanChangeDemand(event.kind)) wakeup.Notify(true);
                                },
                            .on_lost = [](const Error&) {},  // the manager reports it
                            .on_refused = [](const Error&) {}});
  Clock::time_point next_round = Clock::now();
  Clock::time_point next_demand = next_round;
  bool demand = false;
  while (!console.interrupt.requested() && !fleet.folder.stop_requested()) {
    const Clock::time_point now = Clock::now();
    demand = wakeup.TakeDemand() || demand;
    if (now >= next_round) {
      manager.Step(now);
      next_round = Clock::now() + fleet.settings.poll;
      demand = false;
    } else if (demand && now >= next_demand) {
      manager.SubmitForDemand(now);
      next_demand = Clock::now() + kDemandPeriod;
      demand = false;
    }
    const Clock::time_point next = demand ? std::min(next_demand, next_round) : next_round;
    wakeup.WaitUntil(std::min(next, Clock::now() + kPilotPollPeriod));
  }
}

void PrintStart(const Fleet& fleet, Console& console) {
  const std::string node_text =
      fleet.flags.nodes_per_pilot == 1
          ? " nodes, "
          : " nodes, " + std::to_string(fleet.flags.nodes_per_pilot) + " a job, ";
  console.err.Print("page       " +
                    PageLink(fleet.server.endpoint.url, fleet.flags.server.data_dir, console.err));
  console.err.Print("pilots     " + std::to_string(fleet.settings.limits.nodes_min) + " to " +
                    std::to_string(fleet.settings.limits.nodes_max) + node_text + "as jobs " +
                    pilots::PilotPrefix(fleet.folder.fleet().id) + "N in " +
                    fleet.engine.facts().place + " " + fleet.place + ", which join " +
                    fleet.server.for_pilots);
}

}  // namespace

ExitCode KeepPilots(const Fleet& fleet, Console& console) {
  PrintStart(fleet, console);
  Api api(fleet.server.endpoint);
  const pilots::EngineFacts& engine = fleet.engine.facts();
  const FleetFacts facts{.fleet = fleet.folder.fleet().id,
                         .system = engine.name,
                         .partition = fleet.place,
                         .poll_seconds = std::chrono::duration<double>(fleet.settings.poll).count(),
                         .limits = fleet.settings.limits};
  const auto print = [&](const std::string& text) { console.err.Print(text); };
  std::string last_problem;
  const auto show = [&](const pilots::ManagerView& view) {
    const Status reported = api.ReportPilots(MakeReport(facts, view));
    const std::string text =
        reported.ok() ? "" : "the server refuses the report of pilots: " + reported.error().message;
    if (!text.empty() && text != last_problem) print(text);
    last_problem = text;
  };
  pilots::Manager manager(
      fleet.engine, fleet.folder, fleet.hours,
      {.server = fleet.server.for_pilots,
       .node_resources = fleet.node_resources,
       .limits = fleet.settings.limits,
       .idle = fleet.settings.idle},
      [&] { return ReadSituation(api, fleet.settings.labels); }, print, show);
  RunManager(manager, fleet, console);
  if (const Status written = fleet.hours.Write(); !written.ok()) print(written.error().message);
  const std::string command = "`attune " + engine.command;
  print(fleet.folder.stop_requested()
            ? "ended by " + command + " down`"
            : "ending; pilots continue until they have had no server for " + fleet.flags.give_up +
                  ". " + command + " up` takes them over, " + command + " down` ends them");
  return ExitCode::kSuccess;
}

}  // namespace attune::cli
