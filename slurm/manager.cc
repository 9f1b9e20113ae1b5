#include "slurm/manager.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace attune::slurm {
namespace {

// Its executors that are connected.
struct Crew {
  int there = 0;
  bool busy = false;  // one of them runs something
};

Crew CrewOf(const Situation& situation, const std::string& pilot) {
  Crew crew;
  for (const Host& host : situation.hosts) {
    if (host.pilot != pilot) continue;
    ++crew.there;
    crew.busy = crew.busy || host.free != host.total;
  }
  return crew;
}

}  // namespace

Manager::Manager(Tools& tools, FleetFolder& folder, HoursBook& hours, Options options, Look look,
                 Say say, Show show)
    : tools_(tools),
      folder_(folder),
      hours_(hours),
      options_(std::move(options)),
      look_(std::move(look)),
      say_(std::move(say)),
      show_(std::move(show)) {}

void Manager::Step(Clock::time_point now) {
  const Result<Situation> situation = LookAtServer();
  if (!situation.ok())
    return Once("server", "the server cannot be asked: " + situation.error().message);
  Once("server", "");
  Act(*situation, now);
  std::string silent;
  for (const Job& job : view_.jobs)
    if (silent.empty()) silent = Silent(job);
  Once("silent", silent);
  view_.hosts.clear();
  for (const Host& host : situation->hosts)
    if (!host.pilot.empty()) view_.hosts.push_back(host);
  view_.hours = hours_.hours();
  view_.hindrances = Hindrances(now);
  show_(view_);
}

void Manager::Act(const Situation& situation, Clock::time_point now) {
  Result<std::vector<Job>> jobs = tools_.Jobs(PilotPrefix(folder_.fleet().id));
  if (!jobs.ok()) return Once("squeue", "Slurm cannot be asked: " + jobs.error().message);
  Once("squeue", "");
  view_.jobs = *std::move(jobs);
  const Room room = PilotRoom(situation);
  const Status counted = hours_.Count(view_.jobs, situation.hosts, room);
  Once("hours", counted.ok() ? "" : counted.error().message);
  if (!Reconcile(view_.jobs, situation, now)) return;

  Plan plan =
      MakePlan(situation.wanted, situation.hosts, Pilots(view_.jobs, now), room, options_.limits);
  std::string impossible;
  for (const Hindrance& one : plan.impossible)
    impossible += (impossible.empty() ? "sweep " : "\nsweep ") + one.sweep + ": " + one.text;
  Once("impossible", impossible);
  impossible_ = std::move(plan.impossible);
  LetGo(view_.jobs, situation, plan, now);
  if (plan.submit > 0 && (!hold_until_ || now >= *hold_until_)) Submit(plan.submit, now);
}

// What stands between those that wait and pilots: what cannot be asked or written, Slurm's refusal,
// and what it says about those that have not joined.
std::vector<Hindrance> Manager::Hindrances(Clock::time_point now) const {
  std::vector<Hindrance> hindrances;
  for (const char* about : {"squeue", "save", "silent"}) {
    const auto said = said_.find(about);
    if (said != said_.end() && !said->second.empty()) hindrances.push_back({"", said->second});
  }
  if (hold_until_ && now < *hold_until_) hindrances.push_back({"", refusal_});
  std::map<std::string, int> pilots;  // by what Slurm says
  for (const Job& job : view_.jobs) {
    const auto known = known_.find(job.name);
    if (known == known_.end() || known->second.joined || known->second.asked) continue;
    if (!Silent(job).empty()) continue;  // said already
    ++pilots[job.state + (job.reason.empty() ? "" : " (" + job.reason + ")")];
  }
  for (const auto& [words, count] : pilots)
    hindrances.push_back(
        {"", std::to_string(count) + (count == 1 ? " pilot is " : " pilots are ") + words});
  hindrances.insert(hindrances.end(), impossible_.begin(), impossible_.end());
  return hindrances;
}

Result<Situation> Manager::LookAtServer() {
  Result<Situation> situation = look_();
  if (!situation.ok()) return situation;
  for (Host& host : situation->hosts) host.pilot = PilotOf(folder_.fleet().id, host.name);
  return situation;
}

// What the queue says about what is known; false: it cannot be written down.
bool Manager::Reconcile(const std::vector<Job>& jobs, const Situation& situation,
                        Clock::time_point now) {
  FleetFolder::Fleet fleet = folder_.fleet();
  for (const int64_t number : fleet.intents) intents_.emplace(number, now);
  for (const Job& job : jobs) {
    const auto number = PilotNumber(fleet.id, job.name);
    if (!number) continue;
    intents_.erase(*number);
    fleet.intents.erase(*number);
    fleet.next = std::max(fleet.next, *number + 1);
    if (job.phase() == Phase::kEnded) {
      NoteEnded(job, now);
      continue;
    }
    Known& known = known_[job.name];
    const int there = CrewOf(situation, job.name).there;
    if (there < job.nodes) {
      if ((there > 0 || known.joined) && !known.away) known.away = now;
      continue;
    }
    known.away.reset();
    if (!known.joined) {
      known.joined = true;
      refusals_ = 0;
      say_(job.name + " has joined from " + (job.node.empty() ? "its node" : job.node));
    }
  }
  std::erase_if(known_, [&](const auto& each) {
    const auto job = std::ranges::find(jobs, each.first, &Job::name);
    return job == jobs.end() || job->phase() == Phase::kEnded;
  });
  std::erase_if(intents_, [&](const auto& intent) {
    if (now - intent.second < kIntentBelieved) return false;
    fleet.intents.erase(intent.first);
    return true;
  });
  first_ = false;
  if (fleet.intents == folder_.fleet().intents && fleet.next == folder_.fleet().next) return true;
  if (const Status saved = folder_.Save(std::move(fleet)); !saved.ok()) {
    Once("save", saved.error().message);
    return false;
  }
  Once("save", "");
  return true;
}

// One that ended by itself before its executor ever joined is a fault that the next one would have,
// too.
void Manager::NoteEnded(const Job& job, Clock::time_point now) {
  if (!ended_.insert(job.name).second || first_) return;
  const auto known = known_.find(job.name);
  const bool joined = known != known_.end() && known->second.joined;
  const bool asked = known != known_.end() && known->second.asked;
  if (!joined && !asked && job.state != "CANCELLED") {
    return Refused(
        job.name + " ended before it joined (" + job.state + "); its log is " + LogsOf(job), now);
  }
  say_(job.name + " has ended: " + job.state + (asked ? ", as nobody needed it" : ""));
}

std::vector<Pilot> Manager::Pilots(const std::vector<Job>& jobs, Clock::time_point now) const {
  std::vector<Pilot> pilots;
  for (const Job& job : jobs) {
    if (job.phase() == Phase::kEnded || !PilotNumber(folder_.fleet().id, job.name)) continue;
    const auto known = known_.find(job.name);
    const bool useless =
        known != known_.end() &&
        (known->second.asked || (known->second.away && now - *known->second.away > kAwayPatience));
    const bool closing = job.phase() == Phase::kRunning && job.left &&
                         *job.left <= kLeaveBefore + (job.ran + *job.left) / kSuccessorShare;
    pilots.push_back({job.name, job.nodes, useless || job.phase() == Phase::kEnding, closing});
  }
  for (const auto& [number, since] : intents_)
    pilots.push_back({PilotName(folder_.fleet().id, number), options_.limits.nodes_per_pilot});
  return pilots;
}

// As the last one that joined says it: Slurm may give more than was asked for.
Room Manager::PilotRoom(const Situation& situation) const {
  Room room = options_.room;
  for (const Host& host : situation.hosts)
    if (!host.pilot.empty()) room = host.total;
  return room;
}

void Manager::Submit(int pilots, Clock::time_point now) {
  for (int i = 0; i < pilots; ++i) {
    FleetFolder::Fleet fleet = folder_.fleet();
    const int64_t number = fleet.next++;
    fleet.intents.insert(number);
    if (const Status saved = folder_.Save(std::move(fleet)); !saved.ok())
      return Once("save", saved.error().message);
    const std::string name = PilotName(folder_.fleet().id, number);
    const Result<std::string> id =
        tools_.Submit(SbatchOptions(options_.pilot, options_.places, name), options_.script);
    // Where it is not known what became of it, the intent stays until the queue has told.
    if (id.ok() || id.error().code == ErrorCode::kUnavailable) intents_[number] = now;
    if (!id.ok()) {
      if (id.error().code != ErrorCode::kUnavailable) {
        fleet = folder_.fleet();
        fleet.intents.erase(number);
        if (const Status saved = folder_.Save(std::move(fleet)); !saved.ok())
          Once("save", saved.error().message);
      }
      return Refused("Slurm refuses a pilot: " + id.error().message, now);
    }
    say_("submitted " + name + " as job " + *id);
  }
}

void Manager::LetGo(const std::vector<Job>& jobs, const Situation& situation, const Plan& plan,
                    Clock::time_point now) {
  int alive = 0;  // nodes
  std::vector<std::pair<int64_t, const Job*>> unneeded;
  for (const Job& job : jobs) {
    const auto found = known_.find(job.name);
    if (found == known_.end()) continue;
    Known& known = found->second;
    if (known.asked) {
      Insist(job, now);
      continue;
    }
    if (job.phase() == Phase::kEnding) continue;
    const Crew crew = CrewOf(situation, job.name);
    if (crew.there > 0 && !crew.busy && known.away && now - *known.away > kAwayPatience) {
      const std::string lack = std::to_string(job.nodes - crew.there) + " of its " +
                               std::to_string(job.nodes) + " executors ";
      Release(job, lack + (known.joined ? "have gone" : "have not joined"), now);
      if (!known.joined) Refused("their logs are " + LogsOf(job), now);
      continue;
    }
    alive += job.nodes;
    // One that is away may come back with its gangs.
    if (crew.busy || known.away || plan.needed.contains(job.name)) {
      known.unneeded.reset();
      continue;
    }
    if (!known.unneeded) known.unneeded = now;
    if (now - *known.unneeded >= options_.idle)
      unneeded.emplace_back(*PilotNumber(folder_.fleet().id, job.name), &job);
  }
  std::ranges::sort(unneeded, std::greater());  // the newest goes first
  for (const auto& [number, job] : unneeded) {
    if (alive - job->nodes < options_.limits.nodes_min) continue;
    Release(*job, "nobody has needed it for a while", now);
    alive -= job->nodes;
  }
}

// Asks it to leave.
void Manager::Release(const Job& job, const std::string& why, Clock::time_point now) {
  say_("letting " + job.name + " go: " + why);
  known_.at(job.name).asked = now;
  const bool runs = job.phase() == Phase::kRunning;
  const Status status = runs ? tools_.Ask({job.id}) : tools_.Cancel({job.id});
  if (!status.ok()) Once("scancel", "cannot end " + job.name + ": " + status.error().message);
}

// Ends what has been asked for too long.
void Manager::Insist(const Job& job, Clock::time_point now) {
  std::optional<Clock::time_point>& asked = known_.at(job.name).asked;
  if (now - *asked < kLeavePatience) return;
  asked = now;
  const Status status = tools_.Cancel({job.id});
  if (!status.ok()) Once("scancel", "cannot end " + job.name + ": " + status.error().message);
}

// Of a pilot that has run for a while and has not joined: what may be wrong with it. Else empty.
std::string Manager::Silent(const Job& job) const {
  const auto known = known_.find(job.name);
  if (known == known_.end() || known->second.joined || known->second.asked) return "";
  if (job.phase() != Phase::kRunning || job.ran <= kJoinPatience) return "";
  return job.name + " runs and has not joined: can its node reach " + options_.places.server +
         "? Its log is " + LogsOf(job);
}

std::string Manager::LogsOf(const Job& job) const {
  return (options_.places.logs / (job.name + (job.nodes > 1 ? ".*" : ".log"))).string();
}

void Manager::Refused(const std::string& words, Clock::time_point now) {
  const std::chrono::seconds pause =
      std::min(kRefusedPauseMax, kRefusedPause * (1 << std::min(refusals_, 6)));
  ++refusals_;
  hold_until_ = now + pause;
  refusal_ = words;
  say_(words + "\ntrying again in " + std::to_string(pause.count()) + " s");
}

// Says it if it is another text than the last about this; an empty one is not said.
void Manager::Once(const std::string& what, const std::string& text) {
  std::string& last = said_[what];
  if (last == text) return;
  last = text;
  if (!text.empty()) say_(text);
}

Result<int> EndAll(Tools& tools, const FleetFolder& folder, bool at_once,
                   std::set<std::string>& told) {
  const Result<std::vector<Job>> jobs = tools.Jobs(PilotPrefix(folder.fleet().id));
  if (!jobs.ok()) return jobs.error();
  std::vector<std::string> ask;
  std::vector<std::string> cancel;
  int left = 0;
  for (const Job& job : *jobs) {
    if (job.phase() == Phase::kEnded) continue;
    ++left;
    if (job.phase() == Phase::kEnding || !told.insert(job.id).second) continue;
    (job.phase() == Phase::kRunning && !at_once ? ask : cancel).push_back(job.id);
  }
  // One that ends at this moment makes scancel fail; the next call looks again.
  if (!ask.empty() && !tools.Ask(ask).ok()) cancel.insert(cancel.end(), ask.begin(), ask.end());
  if (!cancel.empty()) {
    if (const Status cancelled = tools.Cancel(cancel); !cancelled.ok()) return cancelled.error();
  }
  return left;
}

}  // namespace attune::slurm
