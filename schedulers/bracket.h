#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/log/archive.h"
#include "core/space/objective.h"

namespace attune::schedulers {

// How a bracket is laid out: so many trials begin, and are thinned out at the rungs.
struct BracketShape {
  int64_t trials = 0;
  std::vector<Step> rungs;  // below max, in order
  bool operator==(const BracketShape&) const = default;
};

// Successive halving of one set of trials (Jamieson and Talwalkar, AISTATS 2016), synchronous: at
// each rung the best 1/η of those that came to it go on, by all of their values. A trial is known
// here by its place, from 0.
//
// Nothing is decided on a part of the values, and nothing waits for what cannot change any more: a
// trial goes on once it is among the best even if all that are still to come are better, and is out
// once enough better ones have come. What is to come can only become less, for whoever ends counts
// as a loss; so everything is decided in the end.
class Bracket {
 public:
  enum class Place : uint8_t {
    kTraining,  // on its way to its rung
    kWaiting,   // at it, and not decided
    kChosen,    // paused, and to go on
    kOut,       // lost, ended, or past the last rung
  };
  struct Member {
    Step step{0};        // with which it came to a rung last
    uint32_t level = 0;  // index of the rung that it is on its way to, or at; past the last: all
    Place place = Place::kTraining;
  };
  // What a member came to a rung with.
  struct Mark {
    double value = 0;
    uint32_t member = 0;
  };
  // How a member stands at a rung.
  struct Standing {
    Step rung;
    double value = std::numeric_limits<double>::quiet_NaN();
    int64_t rank = 0;
    int64_t peers = 0;                                         // that have come to it so far
    int64_t going_on = 0;                                      // so many go on from it
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // while fewer have come
  };

  Bracket() = default;
  // REQUIRES: reduction_factor >= 2.
  Bracket(BracketShape shape, int64_t reduction_factor);

  const BracketShape& shape() const { return shape_; }
  const std::vector<Member>& members() const { return members_; }
  bool Full() const { return std::ssize(members_) >= shape_.trials; }
  bool Over() const;  // none of its members is judged any more, and none comes

  // There is such a member, and those before it.
  void Join(uint32_t member);
  // The rung that the member comes to next, after the step; nullopt: none.
  std::optional<Step> NextRung(uint32_t member, Step after) const;
  // Whether a report of this step brings the member to a rung.
  bool Arrives(uint32_t member, Step step) const;
  // It has come to a rung, and is on its way to a further one, waiting, or out. Of rungs that it
  // has come past at once its value counts for each, one after the other. REQUIRES: Arrives.
  void Arrive(const Objective& objective, uint32_t member, Step step, double value);
  // One that waited or was chosen has been let go on.
  void GoOn(const Objective& objective, uint32_t member);
  // It has ended.
  void Leave(const Objective& objective, uint32_t member);
  // Nobody else joins: of those that are there the best 1/η go on, and one at least. Not kept by
  // Fields.
  void Close(const Objective& objective);

  // At the rung that it waits at or was out at, or the one that it has come past last.
  // REQUIRES: it has come to one.
  Standing StandingOf(uint32_t member) const;

  template <class A>
  friend void Fields(A& archive, Like<A, Bracket>& bracket) {
    archive(bracket.shape_, bracket.reduction_factor_, bracket.members_, bracket.marks_,
            bracket.passed_);
  }

 private:
  // Decides what is certain.
  void Settle(const Objective& objective);
  void AddMark(const Objective& objective, uint32_t member, double value);
  // Past its rung, and at the next if it has come as far; of several, repeated by the caller.
  void Advance(const Objective& objective, uint32_t member, double value);
  int64_t Trials() const;  // that have joined or may
  int64_t GoingOn(size_t level) const;

  BracketShape shape_;
  int64_t reduction_factor_ = 2;
  std::vector<Member> members_;
  std::vector<std::vector<Mark>> marks_;  // by rung: best first, of equal ones the earlier
  std::vector<int64_t> passed_;           // by rung: how many have gone on from it
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
