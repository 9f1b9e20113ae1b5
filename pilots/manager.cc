#include "pilots/manager.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "pilots/names.h"

namespace attune::pilots {
namespace {

// The connected executors of a pilot.
struct ConnectedExecutors {
  int count = 0;
  bool busy = false;  // a gang runs on one of them
};

ConnectedExecutors FindConnected(const Situation& situation, const std::string& pilot) {
  ConnectedExecutors executors;
  for (const Host& host : situation.hosts) {
    if (host.pilot != pilot) continue;
    ++executors.count;
    executors.busy = executors.busy || host.free != host.total;
  }
  return executors;
}

// "PENDING (Priority)"
std::string Describe(const Job& job) {
  return job.state + (job.reason.empty() ? "" : " (" + job.reason + ")");
}

}  // namespace

Manager::Manager(Engine& engine, FleetFolder& folder, HoursBook& hours, Options options,
                 ReadServer read_server, Print print, Show show)
    : engine_(engine),
      folder_(folder),
      hours_(hours),
      options_(std::move(options)),
      read_server_(std::move(read_server)),
      print_(std::move(print)),
      show_(std::move(show)) {}

void Manager::Step(Clock::time_point now) {
  const Result<Situation> situation = ReadSituation();
  if (!situation.ok())
    return ReportOnce("server", "the server does not answer: " + situation.error().message);
  ReportOnce("server", "");
  jobs_known_ = ReadJobs(*situation, now);
  if (jobs_known_) {
    const Plan plan = PlanPilots(*situation, now);
    ReleaseUnneeded(view_.jobs, *situation, plan, now);
    SubmitPilots(plan.submit, now);
  }
  std::string missing_join;
  for (const Job& job : view_.jobs)
    if (missing_join.empty()) missing_join = DescribeMissingJoin(job);
  ReportOnce("silent", missing_join);
  view_.hosts.clear();
  for (const Host& host : situation->hosts)
    if (!host.pilot.empty()) view_.hosts.push_back(host);
  view_.hours = hours_.hours();
  view_.hindrances = FindHindrances(now);
  show_(view_);
}

void Manager::SubmitForDemand(Clock::time_point now) {
  if (!jobs_known_) return;
  const Result<Situation> situation = ReadSituation();
  if (situation.ok()) SubmitPilots(PlanPilots(*situation, now).submit, now);
}

// Reads the engine's jobs, counts their hours, and updates the records. Returns false if no pilots
// may be submitted or released in this round.
bool Manager::ReadJobs(const Situation& situation, Clock::time_point now) {
  Result<std::vector<Job>> jobs = engine_.Jobs();
  if (!jobs.ok()) {
    ReportOnce("jobs", engine_.facts().name + " does not answer: " + jobs.error().message);
    return false;
  }
  ReportOnce("jobs", "");
  view_.jobs = *std::move(jobs);
  const Status counted = hours_.Count(view_.jobs, situation.hosts, CurrentNodeResources(situation));
  ReportOnce("hours", counted.ok() ? "" : counted.error().message);
  return Reconcile(view_.jobs, situation, now);
}

Plan Manager::PlanPilots(const Situation& situation, Clock::time_point now) {
  Plan plan =
      MakePlan(situation.demands, situation.hosts, ToPilots(view_.jobs, now),
               CurrentNodeResources(situation), options_.limits, engine_.facts().gpu_option);
  std::string impossible;
  for (const Hindrance& hindrance : plan.impossible)
    impossible +=
        (impossible.empty() ? "sweep " : "\nsweep ") + hindrance.sweep + ": " + hindrance.text;
  ReportOnce("impossible", impossible);
  impossible_ = plan.impossible;
  return plan;
}

// Reasons why gangs still wait: failed calls, the engine's refusal, pilots that have not joined,
// and gangs that no pilot can run.
std::vector<Hindrance> Manager::FindHindrances(Clock::time_point now) const {
  std::vector<Hindrance> hindrances;
  for (const char* topic : {"jobs", "save", "silent"}) {
    const auto message = last_messages_.find(topic);
    if (message != last_messages_.end() && !message->second.empty())
      hindrances.push_back({"", message->second});
  }
  if (hold_until_ && now < *hold_until_) hindrances.push_back({"", refusal_});
  std::map<std::string, int> pilots;  // by state and reason
  for (const Job& job : view_.jobs) {
    const auto record = records_.find(job.name);
    if (record == records_.end() || record->second.joined || record->second.asked_at) continue;
    if (!DescribeMissingJoin(job).empty()) continue;  // reported above
    ++pilots[Describe(job)];
  }
  for (const auto& [description, count] : pilots)
    hindrances.push_back(
        {"", std::to_string(count) + (count == 1 ? " pilot is " : " pilots are ") + description});
  hindrances.insert(hindrances.end(), impossible_.begin(), impossible_.end());
  return hindrances;
}

Result<Situation> Manager::ReadSituation() {
  Result<Situation> situation = read_server_();
  if (!situation.ok()) return situation;
  for (Host& host : situation->hosts) host.pilot = PilotOf(folder_.fleet().id, host.name);
  return situation;
}

// Updates records and intents from the queue. Returns false if the fleet's state cannot be saved.
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
    if (job.phase == Phase::kEnded) {
      RecordEnd(job, now);
      continue;
    }
    PilotRecord& record = records_[job.name];
    if (job.phase == Phase::kPending) {  // also again, if the engine has requeued it
      record.joined = false;
      record.away_since.reset();
      continue;
    }
    const int connected = FindConnected(situation, job.name).count;
    if (connected < job.nodes) {
      if ((connected > 0 || record.joined) && !record.away_since) record.away_since = now;
      continue;
    }
    record.away_since.reset();
    if (!record.joined) {
      record.joined = record.ever_joined = true;
      refusals_ = 0;
      print_(job.name + " has joined from " + (job.node.empty() ? "its node" : job.node));
    }
  }
  std::vector<std::string> gone;
  for (const auto& [name, record] : records_)
    if (std::ranges::find(jobs, name, &Job::name) == jobs.end()) gone.push_back(name);
  for (const std::string& name : gone) RecordEnd({.name = name, .state = "deleted"}, now);
  std::erase_if(records_, [&](const auto& record) { return ended_.contains(record.first); });
  std::erase_if(intents_, [&](const auto& intent) {
    if (now - intent.second < kIntentTimeout) return false;
    fleet.intents.erase(intent.first);
    return true;
  });
  first_round_ = false;
  if (fleet.intents == folder_.fleet().intents && fleet.next == folder_.fleet().next) return true;
  if (const Status saved = folder_.Save(std::move(fleet)); !saved.ok()) {
    ReportOnce("save", saved.error().message);
    return false;
  }
  ReportOnce("save", "");
  return true;
}

// A pilot that ended by itself before its executor joined delays further submissions, because the
// next pilot would probably fail as well.
void Manager::RecordEnd(const Job& job, Clock::time_point now) {
  if (!ended_.insert(job.name).second || first_round_) return;
  const auto record = records_.find(job.name);
  const bool joined = record != records_.end() && record->second.ever_joined;
  const bool asked = record != records_.end() && record->second.asked_at;
  if (!joined && !asked && !job.cancelled) {
    return DelaySubmissions(
        job.name + " ended before it joined (" + Describe(job) + "); " + engine_.LogHint(job), now);
  }
  print_(job.name + " has ended: " + Describe(job) + (asked ? ", because nobody needed it" : ""));
}

std::vector<Pilot> Manager::ToPilots(const std::vector<Job>& jobs, Clock::time_point now) const {
  std::vector<Pilot> pilots;
  for (const Job& job : jobs) {
    if (job.phase == Phase::kEnded || !PilotNumber(folder_.fleet().id, job.name)) continue;
    const auto record = records_.find(job.name);
    const bool useless =
        record != records_.end() &&
        (record->second.asked_at || job.lost_node ||
         (record->second.away_since && now - *record->second.away_since > kAwayTimeout));
    const bool closing =
        job.ran > std::chrono::seconds(0) && job.left &&
        *job.left <= engine_.facts().leave_before + (job.ran + *job.left) / kSuccessorShare;
    pilots.push_back({job.name, job.nodes, useless || job.phase == Phase::kEnding, closing});
  }
  for (const auto& [number, since] : intents_)
    pilots.push_back({PilotName(folder_.fleet().id, number), options_.limits.nodes_per_pilot});
  return pilots;
}

// The resources that the last joined pilot reported: the engine may allocate more than was
// requested.
Resources Manager::CurrentNodeResources(const Situation& situation) const {
  Resources resources = options_.node_resources;
  for (const Host& host : situation.hosts)
    if (!host.pilot.empty()) resources = host.total;
  return resources;
}

// Does nothing while submissions are delayed.
void Manager::SubmitPilots(int pilots, Clock::time_point now) {
  if (hold_until_ && now < *hold_until_) return;
  for (int i = 0; i < pilots; ++i) {
    FleetFolder::Fleet fleet = folder_.fleet();
    const int64_t number = fleet.next++;
    fleet.intents.insert(number);
    if (const Status saved = folder_.Save(std::move(fleet)); !saved.ok())
      return ReportOnce("save", saved.error().message);
    const std::string name = PilotName(folder_.fleet().id, number);
    const Result<std::string> id = engine_.Submit(name);
    // After kUnavailable the job may exist, so the intent stays until the queue shows it or it
    // expires.
    if (id.ok() || id.error().code == ErrorCode::kUnavailable) intents_[number] = now;
    if (!id.ok()) {
      if (id.error().code != ErrorCode::kUnavailable) {
        fleet = folder_.fleet();
        fleet.intents.erase(number);
        if (const Status saved = folder_.Save(std::move(fleet)); !saved.ok())
          ReportOnce("save", saved.error().message);
      }
      const bool refused = id.error().code != ErrorCode::kUnavailable;
      return DelaySubmissions(engine_.facts().name + (refused ? " refuses" : " cannot accept") +
                                  " a pilot: " + id.error().message,
                              now);
    }
    print_("submitted " + name + (*id == name ? "" : " as job " + *id));
  }
}

void Manager::ReleaseUnneeded(const std::vector<Job>& jobs, const Situation& situation,
                              const Plan& plan, Clock::time_point now) {
  int alive_nodes = 0;
  std::vector<std::pair<int64_t, const Job*>> idle;
  for (const Job& job : jobs) {
    const auto found = records_.find(job.name);
    if (found == records_.end()) continue;
    PilotRecord& record = found->second;
    if (record.asked_at) {
      CancelIfOverdue(job, record.asked_at, now);
      continue;
    }
    if (job.phase == Phase::kEnding) {
      if (engine_.facts().cancels_ending_jobs) CancelIfOverdue(job, record.ending_since, now);
      continue;
    }
    record.ending_since.reset();
    const ConnectedExecutors executors = FindConnected(situation, job.name);
    if (executors.count > 0 && !executors.busy && record.away_since &&
        now - *record.away_since > kAwayTimeout) {
      const std::string missing = std::to_string(job.nodes - executors.count) + " of its " +
                                  std::to_string(job.nodes) + " executors ";
      Release(job, missing + (record.joined ? "have gone" : "have not joined"), now);
      if (!record.joined) DelaySubmissions("to see their logs, " + engine_.LogHint(job), now);
      continue;
    }
    alive_nodes += job.nodes;
    // A pilot with missing executors may come back with its gangs.
    if (executors.busy || record.away_since || plan.needed.contains(job.name)) {
      record.idle_since.reset();
      continue;
    }
    if (!record.idle_since) record.idle_since = now;
    if (now - *record.idle_since >= options_.idle)
      idle.emplace_back(*PilotNumber(folder_.fleet().id, job.name), &job);
  }
  std::ranges::sort(idle, std::greater());  // the newest goes first
  for (const auto& [number, job] : idle) {
    if (alive_nodes - job->nodes < options_.limits.nodes_min) continue;
    Release(*job, "no gang has needed it for a while", now);
    alive_nodes -= job->nodes;
  }
}

// Asks a running pilot to leave; cancels a pilot that waits in the queue.
void Manager::Release(const Job& job, const std::string& why, Clock::time_point now) {
  print_("letting " + job.name + " go: " + why);
  records_.at(job.name).asked_at = now;
  const bool runs = job.phase == Phase::kRunning;
  const Status status = runs ? engine_.RequestExit({job.id}) : engine_.Cancel({job.id});
  if (!status.ok()) ReportOnce("end", "cannot end " + job.name + ": " + status.error().message);
}

// Cancels a pilot whose end began more than EngineFacts::leave_timeout ago. `since` is then `now`.
void Manager::CancelIfOverdue(const Job& job, std::optional<Clock::time_point>& since,
                              Clock::time_point now) {
  if (!since) since = now;
  if (now - *since < engine_.facts().leave_timeout) return;
  since = now;
  const Status status = engine_.Cancel({job.id});
  if (!status.ok()) ReportOnce("end", "cannot end " + job.name + ": " + status.error().message);
}

// A hint for a pilot that has run for a while and has not joined; empty for other pilots.
std::string Manager::DescribeMissingJoin(const Job& job) const {
  const auto record = records_.find(job.name);
  if (record == records_.end() || record->second.joined || record->second.asked_at) return "";
  if (job.phase != Phase::kRunning || !job.reason.empty() || job.ran <= kJoinTimeout) return "";
  return job.name + " runs but has not joined; check that its node can reach " + options_.server +
         ", and " + engine_.LogHint(job);
}

void Manager::DelaySubmissions(const std::string& reason, Clock::time_point now) {
  const std::chrono::seconds delay =
      std::min(kRetryDelayMax, kRetryDelay * (1 << std::min(refusals_, 6)));
  ++refusals_;
  hold_until_ = now + delay;
  refusal_ = reason;
  print_(reason + "\nnext attempt in " + std::to_string(delay.count()) + " s");
}

// Prints the text if it differs from the last text on this topic. An empty text is not printed.
void Manager::ReportOnce(const std::string& topic, const std::string& text) {
  std::string& last = last_messages_[topic];
  if (last == text) return;
  last = text;
  if (!text.empty()) print_(text);
}

Result<int> EndAll(Engine& engine, const std::vector<Job>& jobs, bool at_once,
                   std::set<std::string>& told) {
  std::vector<std::string> running;
  std::vector<std::string> to_cancel;
  int remaining = 0;
  for (const Job& job : jobs) {
    if (job.phase == Phase::kEnded) continue;
    ++remaining;
    const bool is_left_alone =
        job.phase == Phase::kEnding && !(at_once && engine.facts().cancels_ending_jobs);
    if (is_left_alone || told.contains(job.id)) continue;
    (job.phase == Phase::kRunning && !at_once ? running : to_cancel).push_back(job.id);
  }
  // A request fails if a pilot ends at this moment.
  if (!running.empty() && !engine.RequestExit(running).ok())
    to_cancel.insert(to_cancel.end(), running.begin(), running.end());
  if (!to_cancel.empty()) {
    if (const Status cancelled = engine.Cancel(to_cancel); !cancelled.ok())
      return cancelled.error();
  }
  told.insert(running.begin(), running.end());
  told.insert(to_cancel.begin(), to_cancel.end());
  return remaining;
}

}  // namespace attune::pilots
