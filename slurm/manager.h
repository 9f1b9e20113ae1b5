#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/fleet_folder.h"
#include "slurm/hours.h"
#include "slurm/pilot.h"
#include "slurm/plan.h"
#include "slurm/tools.h"

namespace attune::slurm {

// What the server says: what waits, and who is there.
struct Situation {
  std::vector<Wanted> wanted;
  std::vector<Host> hosts;  // executors that are connected; the manager knows their pilots
};

// What a round has seen, for people.
struct ManagerView {
  std::vector<Job> jobs;  // of the fleet, those included that have ended a short while ago
  std::vector<Host> hosts;
  Hours hours;
  std::vector<Hindrance> hindrances;  // in Slurm's own words where they are its
};

// Keeps as many pilots as what waits needs: one look after the other at the server and at Slurm.
// Nothing but numbers and intents is remembered over its own death; all else Slurm knows.
class Manager {
 public:
  using Clock = std::chrono::steady_clock;
  using Look = std::function<Result<Situation>()>;
  using Say = std::function<void(const std::string&)>;
  using Show = std::function<void(const ManagerView&)>;

  struct Options {
    PilotOptions pilot;
    PilotPlaces places;
    std::filesystem::path script;
    Room room;  // of a pilot, before one has joined
    Limits limits;
    std::chrono::milliseconds idle{300'000};  // then a pilot that nobody needs is let go
  };

  // An intent that the queue does not show is believed for so long: sbatch may be under way.
  static constexpr std::chrono::seconds kIntentBelieved{30};
  // A pilot that was asked to leave is cancelled if it has not after so long.
  static constexpr std::chrono::seconds kLeavePatience{30};
  // One of which an executor is away for longer, having joined, or not having joined with the
  // others, counts as room no more: its node may be gone, and Slurm take minutes to notice. What is
  // left of one with several nodes is let go once nothing runs there.
  static constexpr std::chrono::seconds kAwayPatience{30};
  // For what runs on a pilot another is submitted when so large a part of its time is left, and
  // what it needs to leave.
  static constexpr int kSuccessorShare = 10;
  // A pilot that has run for longer and not joined says so: it may not reach the server.
  static constexpr std::chrono::seconds kJoinPatience{60};
  // The pause after Slurm has refused, doubled for each further time.
  static constexpr std::chrono::seconds kRefusedPause{10};
  static constexpr std::chrono::seconds kRefusedPauseMax{600};

  // All outlive the manager; `show` is called in each round in which the server could be asked.
  // REQUIRES: `folder` is locked.
  Manager(Tools& tools, FleetFolder& folder, HoursBook& hours, Options options, Look look, Say say,
          Show show);

  // One round: looks, submits, lets go. What it cannot do now is said, once, and tried again in a
  // later round.
  void Step(Clock::time_point now);

 private:
  struct Known {                            // about a pilot, while it is in the queue
    bool joined = false;                    // all of its executors were seen at once
    std::optional<Clock::time_point> away;  // since: one of those that had, or should have, joined
    std::optional<Clock::time_point> unneeded;  // since
    std::optional<Clock::time_point> asked;     // to leave
  };

  Result<Situation> LookAtServer();
  void Act(const Situation& situation, Clock::time_point now);
  std::vector<Hindrance> Hindrances(Clock::time_point now) const;
  bool Reconcile(const std::vector<Job>& jobs, const Situation& situation, Clock::time_point now);
  void NoteEnded(const Job& job, Clock::time_point now);
  std::vector<Pilot> Pilots(const std::vector<Job>& jobs, Clock::time_point now) const;
  Room PilotRoom(const Situation& situation) const;
  void Submit(int pilots, Clock::time_point now);
  void LetGo(const std::vector<Job>& jobs, const Situation& situation, const Plan& plan,
             Clock::time_point now);
  void Release(const Job& job, const std::string& why, Clock::time_point now);
  void Insist(const Job& job, Clock::time_point now);
  std::string Silent(const Job& job) const;
  std::string LogsOf(const Job& job) const;
  void Refused(const std::string& words, Clock::time_point now);
  void Once(const std::string& what, const std::string& text);

  Tools& tools_;
  FleetFolder& folder_;
  HoursBook& hours_;
  const Options options_;
  const Look look_;
  const Say say_;
  const Show show_;

  bool first_ = true;
  std::map<std::string, Known> known_;            // pilots by name
  std::map<int64_t, Clock::time_point> intents_;  // since
  std::set<std::string> ended_;                   // pilots whose end was taken note of
  std::map<std::string, std::string> said_;       // about what, what was said last
  ManagerView view_;                              // of this round
  std::vector<Hindrance> impossible_;             // gangs, by the last plan
  std::string refusal_;                           // the last one's words
  int refusals_ = 0;                              // in a row
  std::optional<Clock::time_point> hold_until_;
};

// Tells all pilots of a fleet to end that are not `told` yet, and adds them: those that run are
// asked, so that they take leave of the server (twice would not let them), or cancelled `at_once`.
// Returns how many there were: 0 once all are gone. REQUIRES: `folder` is locked, so that nobody
// submits meanwhile.
Result<int> EndAll(Tools& tools, const FleetFolder& folder, bool at_once,
                   std::set<std::string>& told);

}  // namespace attune::slurm
