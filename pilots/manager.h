#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "pilots/engine.h"
#include "pilots/fleet_folder.h"
#include "pilots/hours.h"
#include "pilots/plan.h"

namespace attune::pilots {

// The state of the server: gangs that wait, and connected executors.
struct Situation {
  std::vector<GangDemand> demands;
  std::vector<Host> hosts;  // without their pilots, which the manager fills in
};

// The result of a round, for users.
struct ManagerView {
  std::vector<Job> jobs;  // of the fleet, including jobs that ended a short time ago
  std::vector<Host> hosts;
  Hours hours;
  std::vector<Hindrance> hindrances;  // the engine's messages are quoted as it prints them
};

// Keeps as many pilots as the waiting gangs need. In each round it asks the server and the engine,
// then submits or releases pilots. If the manager is restarted, it reads pilot numbers and intents
// from the fleet's folder, and everything else from the engine.
class Manager {
 public:
  using Clock = std::chrono::steady_clock;
  using ReadServer = std::function<Result<Situation>()>;
  using Print = std::function<void(const std::string&)>;
  using Show = std::function<void(const ManagerView&)>;

  struct Options {
    std::string server;        // HOST:PORT at which pilots reach the server, for messages
    Resources node_resources;  // of a pilot's node, until a pilot has joined
    Limits limits;
    std::chrono::milliseconds idle{300'000};  // a pilot idle for longer is released
  };

  // An intent counts as a pilot for this long although the queue does not show it: the engine's
  // tool may still be running.
  static constexpr std::chrono::seconds kIntentTimeout{30};
  // If an executor of a pilot is missing for longer, the pilot's free resources no longer count.
  // Its node may be down, and the engine may need minutes to notice. The rest of a pilot with
  // several nodes is released when no gang runs there.
  static constexpr std::chrono::seconds kAwayTimeout{30};
  // A successor for a busy pilot is submitted when 1/kSuccessorShare of the pilot's time limit,
  // plus EngineFacts::leave_before, is left.
  static constexpr int kSuccessorShare = 10;
  // A pilot that has run for longer and has not joined is reported: it may not reach the server.
  static constexpr std::chrono::seconds kJoinTimeout{60};
  // The delay after a refusal of the engine. Each further refusal doubles it.
  static constexpr std::chrono::seconds kRetryDelay{10};
  static constexpr std::chrono::seconds kRetryDelayMax{600};

  // `engine`, `folder` and `hours` must outlive the manager. `show` is called after each round in
  // which the server answered. REQUIRES: `folder` is locked.
  Manager(Engine& engine, FleetFolder& folder, HoursBook& hours, Options options,
          ReadServer read_server, Print print, Show show);

  // One round: reads the state, submits and releases pilots. A failure is printed once and retried
  // in a later round.
  void Step(Clock::time_point now);

  // Reads the server and submits pilots for gangs that have begun to wait since the last round.
  // Does not ask the engine for its jobs, so it is cheap.
  void SubmitForDemand(Clock::time_point now);

 private:
  // A pilot in the queue.
  struct PilotRecord {
    bool joined = false;  // all of its executors were connected at once, since it last started
    bool ever_joined = false;
    std::optional<Clock::time_point> away_since;    // an executor is missing
    std::optional<Clock::time_point> idle_since;    // no gang runs there or needs it
    std::optional<Clock::time_point> asked_at;      // the last request to leave
    std::optional<Clock::time_point> ending_since;  // its end has begun without a request
  };

  Result<Situation> ReadSituation();
  bool ReadJobs(const Situation& situation, Clock::time_point now);
  Plan PlanPilots(const Situation& situation, Clock::time_point now);
  std::vector<Hindrance> FindHindrances(Clock::time_point now) const;
  bool Reconcile(const std::vector<Job>& jobs, const Situation& situation, Clock::time_point now);
  void RecordEnd(const Job& job, Clock::time_point now);
  std::vector<Pilot> ToPilots(const std::vector<Job>& jobs, Clock::time_point now) const;
  Resources CurrentNodeResources(const Situation& situation) const;
  void SubmitPilots(int pilots, Clock::time_point now);
  void ReleaseUnneeded(const std::vector<Job>& jobs, const Situation& situation, const Plan& plan,
                       Clock::time_point now);
  void Release(const Job& job, const std::string& why, Clock::time_point now);
  void CancelIfOverdue(const Job& job, std::optional<Clock::time_point>& since,
                       Clock::time_point now);
  std::string DescribeMissingJoin(const Job& job) const;
  void DelaySubmissions(const std::string& reason, Clock::time_point now);
  void ReportOnce(const std::string& topic, const std::string& text);

  Engine& engine_;
  FleetFolder& folder_;
  HoursBook& hours_;
  const Options options_;
  const ReadServer read_server_;
  const Print print_;
  const Show show_;

  bool first_round_ = true;
  std::map<std::string, PilotRecord> records_;        // pilots by name
  std::map<int64_t, Clock::time_point> intents_;      // pilot numbers and the time of submission
  std::set<std::string> ended_;                       // pilots whose end was recorded
  std::map<std::string, std::string> last_messages_;  // topic -> last message
  ManagerView view_;                                  // of the current round
  bool jobs_known_ = false;                           // the engine answered in the last round
  std::vector<Hindrance> impossible_;                 // from the last plan
  std::string refusal_;                               // text of the last refusal
  int refusals_ = 0;                                  // consecutive refusals
  std::optional<Clock::time_point> hold_until_;       // no submissions before
};

// Ends all pilots in `jobs`, the fleet's jobs, that are not in `told`, and adds them to `told`. A
// running pilot is asked to leave, so that its executors can say goodbye to the server; a second
// request would interrupt that. With `at_once`, it is cancelled instead. Returns the number of
// remaining pilots. REQUIRES: the fleet's folder is locked, so that no manager submits pilots
// meanwhile.
Result<int> EndAll(Engine& engine, const std::vector<Job>& jobs, bool at_once,
                   std::set<std::string>& told);

}  // namespace attune::pilots
