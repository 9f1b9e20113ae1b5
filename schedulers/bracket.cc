#include "schedulers/bracket.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace attune::schedulers {

Bracket::Bracket(BracketShape shape, int64_t reduction_factor)
    : shape_(std::move(shape)),
      reduction_factor_(reduction_factor),
      marks_(shape_.rungs.size()),
      passed_(shape_.rungs.size()) {
  ATTUNE_CHECK(reduction_factor >= 2);
}

bool Bracket::Over() const {
  return Full() && std::ranges::all_of(
                       members_, [](const Member& member) { return member.place == Place::kOut; });
}

void Bracket::Join(uint32_t member) {
  const Member fresh{.place = shape_.rungs.empty() ? Place::kOut : Place::kTraining};
  if (member >= members_.size()) members_.resize(member + 1, fresh);
}

std::optional<Step> Bracket::NextRung(uint32_t member, Step after) const {
  const Member& own = members_[member];
  if (own.place == Place::kOut) return std::nullopt;
  const auto from = shape_.rungs.begin() + static_cast<ptrdiff_t>(own.level);
  const auto next = std::upper_bound(from, shape_.rungs.end(), std::max(after, own.step));
  if (next == shape_.rungs.end()) return std::nullopt;
  return *next;
}

bool Bracket::Arrives(uint32_t member, Step step) const {
  const Member& own = members_[member];
  return own.place == Place::kTraining && step >= shape_.rungs[own.level];
}

void Bracket::Arrive(const Objective& objective, uint32_t member, Step step, double value) {
  Member& own = members_[member];
  own.step = step;
  own.place = Place::kWaiting;
  AddMark(objective, member, value);
  Settle(objective);
  if (own.place == Place::kChosen) GoOn(objective, member);
}

void Bracket::GoOn(const Objective& objective, uint32_t member) {
  Member& own = members_[member];
  const double value = StandingOf(member).value;
  while (own.place == Place::kWaiting) Advance(objective, member, value);
  if (own.place != Place::kChosen) return;
  own.place = own.level == shape_.rungs.size() ? Place::kOut : Place::kTraining;
  Settle(objective);
}

void Bracket::Leave(const Objective& objective, uint32_t member) {
  if (std::exchange(members_[member].place, Place::kOut) != Place::kOut) Settle(objective);
}

void Bracket::Close(const Objective& objective) {
  closed_ = true;
  Settle(objective);
}

int64_t Bracket::Trials() const {
  return closed_ ? std::ssize(members_) : std::max(shape_.trials, std::ssize(members_));
}

int64_t Bracket::GoingOn(size_t level) const {
  int64_t trials = Trials();
  for (size_t i = 0; i <= level; ++i) trials = std::max<int64_t>(trials / reduction_factor_, 1);
  return trials;
}

void Bracket::Settle(const Objective& objective) {
  int64_t to_come = Trials() - std::ssize(members_);  // how many may still come to the rung
  for (size_t level = 0; level < marks_.size(); ++level) {
    const int64_t going_on = GoingOn(level);
    to_come += std::ranges::count_if(members_, [&](const Member& member) {
      return member.level == level &&
             (member.place == Place::kTraining || member.place == Place::kChosen);
    });
    int64_t open = 0;
    for (int64_t place = 0; place < std::ssize(marks_[level]); ++place) {
      const Mark mark = marks_[level][static_cast<size_t>(place)];
      Member& member = members_[mark.member];
      if (member.place != Place::kWaiting || member.level != level) continue;
      if (place >= going_on || !std::isfinite(mark.value)) {
        member.place = Place::kOut;
      } else if (place + to_come < going_on) {
        Advance(objective, mark.member, mark.value);
      } else {
        ++open;
      }
    }
    to_come = std::clamp<int64_t>(going_on - passed_[level], 0, open + to_come);
  }
}

void Bracket::Advance(const Objective& objective, uint32_t member, double value) {
  Member& own = members_[member];
  ++passed_[own.level++];
  if (own.level < shape_.rungs.size() && shape_.rungs[own.level] <= own.step) {
    AddMark(objective, member, value);
  } else {
    own.place = Place::kChosen;
  }
}

void Bracket::AddMark(const Objective& objective, uint32_t member, double value) {
  auto& marks = marks_[members_[member].level];
  const auto place = std::ranges::partition_point(
      marks, [&](const Mark& other) { return !objective.Better(value, other.value); });
  marks.insert(place, {value, member});
}

Bracket::Standing Bracket::StandingOf(uint32_t member) const {
  const auto is_own = [member](const Mark& mark) { return mark.member == member; };
  size_t level = std::min<size_t>(members_[member].level, marks_.size() - 1);
  auto mark = std::ranges::find_if(marks_[level], is_own);
  if (mark == marks_[level].end() && level > 0) {
    --level;
    mark = std::ranges::find_if(marks_[level], is_own);
  }
  const auto& marks = marks_[level];
  ATTUNE_CHECK(mark != marks.end());
  const int64_t going_on = GoingOn(level);
  Standing standing{.rung = shape_.rungs[level],
                    .value = mark->value,
                    .rank = mark - marks.begin() + 1,
                    .peers = std::ssize(marks),
                    .going_on = going_on};
  if (standing.peers >= going_on) standing.cutoff = marks[static_cast<size_t>(going_on - 1)].value;
  return standing;
}

}  // namespace attune::schedulers
