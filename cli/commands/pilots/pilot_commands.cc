#include "cli/commands/pilots/pilot_commands.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/views/pilots_view.h"
#include "pilots/hours.h"
#include "pilots/manager.h"
#include "pilots/names.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The manager may be waiting for a command of the engine when it is asked to end.
constexpr std::chrono::seconds kManagerTimeout{60};
// `down` gives up if pilots have not ended this long after they were cancelled.
constexpr std::chrono::seconds kEndTimeout{105};

// Ends the manager, if one runs, and locks the folder, so that no other one submits pilots.
Status EndManager(pilots::FleetFolder& folder) {
  if (Status asked = folder.RequestStop(); !asked.ok()) return asked;
  for (const Clock::time_point until = Clock::now() + kManagerTimeout;;) {
    const Status locked = folder.Lock();
    if (locked.ok() || locked.error().code != ErrorCode::kConflict || Clock::now() > until)
      return locked;
    std::this_thread::sleep_for(kPilotPollPeriod);
  }
}

using Executors = std::vector<rest::Executor>;

// The connected executors of a pilot.
Executors ExecutorsOf(const Executors& executors, const std::string& fleet,
                      const std::string& pilot) {
  Executors found;
  for (const rest::Executor& each : executors) {
    if (each.state != "lost" && pilots::PilotOf(fleet, each.name) == pilot) found.push_back(each);
  }
  return found;
}

// "3 of 4 CPUs, 1 of 2 GPUs"
std::string DescribeUse(const pilots::Job& job, const Executors& executors) {
  if (executors.empty()) return "not joined";
  const auto used = [&](int64_t rest::Executor::*all, int64_t rest::Executor::*free) {
    int64_t total = 0;
    int64_t in_use = 0;
    for (const rest::Executor& executor : executors) {
      total += executor.*all;
      in_use += executor.*all - executor.*free;
    }
    return total == 0 ? "" : std::to_string(in_use) + " of " + std::to_string(total);
  };
  std::string text = used(&rest::Executor::cpus, &rest::Executor::cpus_free) + " CPUs";
  const std::string gpus = used(&rest::Executor::gpus, &rest::Executor::gpus_free);
  if (!gpus.empty()) text += ", " + gpus + " GPUs";
  const auto joined = static_cast<int>(executors.size());
  if (joined < job.nodes)
    text += "; " + std::to_string(joined) + " of " + std::to_string(job.nodes) + " nodes joined";
  return text;
}

// The server's facts about a fleet.
struct ServerView {
  Executors executors;
  std::optional<rest::Fleet> manager;  // the manager's last report; nullopt if there is none
};

Result<ServerView> AskServer(const ServerChoice& server, const std::string& fleet) {
  const Result<Endpoint> endpoint = ServerOf(server);
  if (!endpoint.ok()) return endpoint.error();
  Api api(*endpoint);
  auto executors = api.Executors();
  if (!executors.ok()) return executors.error();
  ServerView view{.executors = std::move(executors->executors), .manager = std::nullopt};
  const auto pilots = api.Pilots();
  if (!pilots.ok()) return pilots.error();
  for (const rest::Fleet& each : pilots->fleets)
    if (each.fleet == fleet) view.manager = each;
  return view;
}

// Prints whether a manager runs, and why waiting gangs get no pilot.
void PrintManager(const std::optional<rest::Fleet>& manager, const std::string& command,
                  Console& console) {
  if (!manager.has_value()) return console.err.Print("no manager has reported to this server");
  if (manager->stale) {
    const auto silent = static_cast<int64_t>(manager->seconds_since_report);
    return console.err.Print("the manager on " + Clean(manager->host) + " has been silent for " +
                             std::to_string(silent) +
                             " s, so no pilots are submitted; run `attune " + command + " up`");
  }
  for (const rest::Blocker& each : manager->blockers) {
    console.err.Print((each.sweep.empty() ? "" : "sweep " + each.sweep + ": ") + Clean(each.text));
  }
}

// JSON of a pilot with its executors themselves instead of their names.
Json PilotWithExecutors(const pilots::Job& job, const Executors& executors) {
  Json pilot = rest::ToJson(MakePilot(job));
  pilot.update(rest::ToJson(rest::ExecutorList{executors}));
  return pilot;
}

}  // namespace

Result<pilots::FleetFolder> OpenForManager(const std::filesystem::path& data_dir,
                                           const pilots::EngineFacts& engine) {
  auto folder = pilots::FleetFolder::OpenOrCreate(data_dir, engine);
  if (!folder.ok()) return folder;
  if (Status locked = folder->Lock(); !locked.ok()) return locked.error();
  folder->ClearStopRequest();
  return folder;
}

ExitCode EndPilots(pilots::Engine& engine, pilots::FleetFolder& folder, Console& console) {
  if (const Status ended = EndManager(folder); !ended.ok()) return Fail(console, ended.error());
  auto hours = pilots::HoursBook::Open(folder.path());
  if (!hours.ok()) return Fail(console, hours.error());
  const std::chrono::seconds grace = engine.facts().down_timeout;
  const Clock::time_point start = Clock::now();
  int pilot_count = 0;
  bool cancel = false;
  std::set<std::string> already_told;
  for (int rounds_without_pilots = 0; rounds_without_pilots < 2;) {
    if (!cancel && Clock::now() - start > grace) {
      cancel = true;
      already_told.clear();
    }
    const auto jobs = engine.Jobs();
    if (!jobs.ok() && jobs.error().code != ErrorCode::kUnavailable)
      return Fail(console, jobs.error());
    if (jobs.ok()) {
      if (const Status counted = hours->Count(*jobs, {}, {}); !counted.ok())
        return Fail(console, counted.error());
    }
    const Result<int> remaining =
        jobs.ok() ? pilots::EndAll(engine, *jobs, cancel, already_told) : jobs.error();
    if (Clock::now() - start > grace + kEndTimeout)
      return Fail(console, {ErrorCode::kUnavailable,
                            engine.facts().name + " has not ended all pilots in time" +
                                (remaining.ok() ? "" : ": " + remaining.error().message) +
                                "; `attune " + engine.facts().command + " status` shows them"});
    pilot_count = std::max(pilot_count, remaining.ok() ? *remaining : 0);
    rounds_without_pilots = remaining.ok() && *remaining == 0 ? rounds_without_pilots + 1 : 0;
    if (rounds_without_pilots < 2) std::this_thread::sleep_for(kPilotPollPeriod);
  }
  folder.ClearStopRequest();
  if (const Status written = hours->Write(); !written.ok())
    console.err.Print("the last seconds of pilots are not counted: " + written.error().message);
  console.err.Print(pilot_count == 0
                        ? "no pilots to end"
                        : std::to_string(pilot_count) +
                              (pilot_count == 1 ? " pilot has" : " pilots have") + " ended");
  return ExitCode::kSuccess;
}

ExitCode ShowPilots(pilots::Engine& engine, const pilots::FleetFolder& folder,
                    const ClientFlags& flags, Console& console) {
  flags.output.Apply(console);
  const std::string& fleet = folder.fleet().id;
  const auto hours = pilots::HoursBook::Open(folder.path());
  if (!hours.ok()) return Fail(console, hours.error());
  const auto jobs = engine.Jobs();
  if (!jobs.ok()) return Fail(console, jobs.error());
  const Result<ServerView> answer = AskServer(flags.server, fleet);
  if (!answer.ok()) console.err.Print("cannot ask the server: " + answer.error().message);
  const ServerView view = answer.ok() ? *answer : ServerView();

  Json pilots = Json::array();
  Table table({{"PILOT"}, {"JOB", true}, {"STATE"}, {"NODE"}, {"ENDS"}, {"IN USE"}, {"REASON"}});
  for (const pilots::Job& job : *jobs) {
    const Executors executors = ExecutorsOf(view.executors, fleet, job.name);
    pilots.push_back(PilotWithExecutors(job, executors));
    const bool ended = job.phase == pilots::Phase::kEnded;
    table.Add({Clean(job.name), job.id, Clean(job.state), Clean(job.node), Clean(job.ends),
               ended ? "" : DescribeUse(job, executors), Clean(job.reason)});
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"fleet", fleet},
                            {"pilots", std::move(pilots)},
                            {"hours", rest::ToJson(MakeHours(hours->hours()))},
                            {"manager", rest::ToJson(view.manager)}},
                           2));
    return ExitCode::kSuccess;
  }
  if (table.empty()) {
    console.err.Print("fleet " + fleet + " has no pilots in " + engine.facts().name + "; `attune " +
                      engine.facts().command + " up` starts them when gangs need them");
  } else {
    console.out.PrintLines(table.Lines(console.out.style(), console.out.width()));
  }
  for (const std::string& line : HoursLines(hours->hours())) console.out.Print(line);
  if (answer.ok()) PrintManager(view.manager, engine.facts().command, console);
  return ExitCode::kSuccess;
}

Result<std::string> FindPilotName(const pilots::FleetFolder& folder, const std::string& text,
                                  const pilots::EngineFacts& engine) {
  const std::string& fleet = folder.fleet().id;
  const std::string prefix = pilots::PilotPrefix(fleet);
  std::string name = text.starts_with(prefix) ? text : prefix + text;
  if (!pilots::PilotOf(fleet, name).empty() && name.find('/') == std::string::npos) return name;
  return Error{ErrorCode::kInvalid, "`" + text +
                                        "` is not a pilot of this fleet; use a number or name "
                                        "from `attune " +
                                        engine.command + " status`"};
}

void PilotDownFlags::AddTo(CLI::App& command) { AddDataDir(command, data_dir); }

void PilotLogsFlags::AddTo(CLI::App& command) {
  command.add_option("PILOT", pilot, "Number or name of the pilot; 3.1: second node of pilot 3")
      ->required();
  AddDataDir(command, data_dir);
}

}  // namespace attune::cli
