#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/log/archive.h"
#include "core/space/objective.h"

namespace attune::schedulers {

// The layout of a bracket: the number of trials that start, and the rungs that thin them out.
struct BracketShape {
  int64_t trials = 0;
  std::vector<Step> rungs;  // below max, in order
  bool operator==(const BracketShape&) const = default;
};

// Synchronous successive halving of one set of trials (Jamieson and Talwalkar, AISTATS 2016): the
// best 1/η of all trials at a rung continue. A trial is a member with an index from 0.
//
// A decision needs all values that can change it, and no others: a member continues once it is
// among the best even if all later arrivals are better, and is out once enough better ones have
// arrived. A member that ends counts as a loss, so the number of later arrivals only falls and
// every member is decided in the end.
class Bracket {
 public:
  enum class Place : uint8_t {
    kTraining,  // before its rung
    kWaiting,   // at its rung, not decided
    kChosen,    // paused, will continue
    kOut,       // lost, ended, or past the last rung
  };
  struct Member {
    Step step{0};        // of its last arrival at a rung
    uint32_t level = 0;  // index of the rung that it is before or at; past the last: their number
    Place place = Place::kTraining;
  };
  // An arrival at a rung.
  struct Mark {
    double value = 0;
    uint32_t member = 0;
  };
  // The position of a member at a rung.
  struct Standing {
    Step rung;
    double value = std::numeric_limits<double>::quiet_NaN();
    int64_t rank = 0;
    int64_t peers = 0;                                         // arrivals so far
    int64_t continuing = 0;                                    // the number that continue from it
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // NaN while fewer have arrived
  };

  Bracket() = default;
  // REQUIRES: reduction_factor >= 2.
  Bracket(BracketShape shape, int64_t reduction_factor);

  const BracketShape& shape() const { return shape_; }
  const std::vector<Member>& members() const { return members_; }
  bool IsFull() const { return std::ssize(members_) >= shape_.trials; }
  // Whether no decision is left and no member will join.
  bool IsDecided() const;

  // Adds this member and the members before it.
  void Join(uint32_t member);
  // The next rung of the member after the step; nullopt: none.
  std::optional<Step> NextRung(uint32_t member, Step after) const;
  // Whether a report of this step reaches the rung of the member.
  bool ReachesRung(uint32_t member, Step step) const;
  // Records the member at its rung. Afterwards it is before a later rung, waiting, or out. If it
  // has passed several rungs at once, its value counts at each, one after the other. REQUIRES:
  // ReachesRung.
  void Record(const Objective& objective, uint32_t member, Step step, double value);
  // A waiting or chosen member continues.
  void Continue(const Objective& objective, uint32_t member);
  // The member has ended.
  void End(const Objective& objective, uint32_t member);
  // No further member joins: the best 1/η of the present ones continue, at least one. Fields does
  // not store this.
  void Close(const Objective& objective);

  // The standing at the rung where the member waits or lost, or at the last rung that it has
  // passed. REQUIRES: it has reached a rung.
  Standing StandingOf(uint32_t member) const;

  template <class A>
  friend void Fields(A& archive, Like<A, Bracket>& bracket) {
    archive(bracket.shape_, bracket.reduction_factor_, bracket.members_, bracket.marks_,
            bracket.passed_);
  }

 private:
  // Decides on each member whose result later arrivals cannot change.
  void DecideMembers(const Objective& objective);
  void Insert(const Objective& objective, uint32_t member, double value);
  // Moves the member past its rung, and records it at the next one if it has reached that too.
  void Advance(const Objective& objective, uint32_t member, double value);
  int64_t TrialCount() const;  // members, and those that may still join
  int64_t ContinuingFrom(size_t level) const;

  BracketShape shape_;
  int64_t reduction_factor_ = 2;
  std::vector<Member> members_;
  std::vector<std::vector<Mark>> marks_;  // by rung: best first, the earlier of equal ones first
  std::vector<int64_t> passed_;           // by rung: the number that continued from it
  bool closed_ = false;
};

template <class A>
void Fields(A& archive, Like<A, BracketShape>& shape) {
  archive(shape.trials, shape.rungs);
}
template <class A>
void Fields(A& archive, Like<A, Bracket::Member>& member) {
  archive(member.step, member.level, member.place);
}
template <class A>
void Fields(A& archive, Like<A, Bracket::Mark>& mark) {
  archive(mark.value, mark.member);
}

}  // namespace attune::schedulers
