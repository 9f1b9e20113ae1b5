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

bool Bracket::IsDecided() const {
  return IsFull() && std::ranges::all_of(members_, [](const Member& member) {
           return member.place == Place::kOut;
         });
}

void Bracket::Join(uint32_t member) {
  const Member fresh{.place = shape_.rungs.empty() ? Place::kOut : Place::kTraining};
  if (member >= members_.size()) members_.resize(member + 1, fresh);
}

std::optional<Step> Bracket::NextRung(uint32_t member, Step after) const {
  const Member& self = members_[member];
  if (self.place == Place::kOut) return std::nullopt;
  const auto from = shape_.rungs.begin() + static_cast<ptrdiff_t>(self.level);
  const auto next = std::upper_bound(from, shape_.rungs.end(), std::max(after, self.step));
  if (next == shape_.rungs.end()) return std::nullopt;
  return *next;
}

bool Bracket::ReachesRung(uint32_t member, Step step) const {
  const Member& self = members_[member];
  return self.place == Place::kTraining && step >= shape_.rungs[self.level];
}

void Bracket::Record(const Objective& objective, uint32_t member, Step step, double value) {
  Member& self = members_[member];
  self.step = step;
  self.place = Place::kWaiting;
  Insert(objective, member, value);
  DecideMembers(objective);
  if (self.place == Place::kChosen) Continue(objective, member);
}

void Bracket::Continue(const Objective& objective, uint32_t member) {
  Member& self = members_[member];
  const double value = StandingOf(member).value;
  while (self.place == Place::kWaiting) Advance(objective, member, value);
  if (self.place != Place::kChosen) return;
  self.place = self.level == shape_.rungs.size() ? Place::kOut : Place::kTraining;
  DecideMembers(objective);
}

void Bracket::End(const Objective& objective, uint32_t member) {
  if (std::exchange(members_[member].place, Place::kOut) != Place::kOut) DecideMembers(objective);
}

void Bracket::Close(const Objective& objective) {
  closed_ = true;
  DecideMembers(objective);
}

int64_t Bracket::TrialCount() const {
  return closed_ ? std::ssize(members_) : std::max(shape_.trials, std::ssize(members_));
}

int64_t Bracket::ContinuingFrom(size_t level) const {
  int64_t trials = TrialCount();
  for (size_t i = 0; i <= level; ++i) trials = std::max<int64_t>(trials / reduction_factor_, 1);
  return trials;
}

void Bracket::DecideMembers(const Objective& objective) {
  int64_t to_arrive = TrialCount() - std::ssize(members_);  // at most, at the rung
  for (size_t level = 0; level < marks_.size(); ++level) {
    const int64_t continuing = ContinuingFrom(level);
    to_arrive += std::ranges::count_if(members_, [&](const Member& member) {
      return member.level == level &&
             (member.place == Place::kTraining || member.place == Place::kChosen);
    });
    int64_t open = 0;
    for (int64_t place = 0; place < std::ssize(marks_[level]); ++place) {
      const Mark mark = marks_[level][static_cast<size_t>(place)];
      Member& member = members_[mark.member];
      if (member.place != Place::kWaiting || member.level != level) continue;
      if (place >= continuing || !std::isfinite(mark.value)) {
        member.place = Place::kOut;
      } else if (place + to_arrive < continuing) {
        Advance(objective, mark.member, mark.value);
      } else {
        ++open;
      }
    }
    to_arrive = std::clamp<int64_t>(continuing - passed_[level], 0, open + to_arrive);
  }
}

void Bracket::Advance(const Objective& objective, uint32_t member, double value) {
  Member& self = members_[member];
  ++passed_[self.level++];
  if (self.level < shape_.rungs.size() && shape_.rungs[self.level] <= self.step) {
    Insert(objective, member, value);
  } else {
    self.place = Place::kChosen;
  }
}

void Bracket::Insert(const Objective& objective, uint32_t member, double value) {
  auto& marks = marks_[members_[member].level];
  const auto place = std::ranges::partition_point(
      marks, [&](const Mark& other) { return !objective.Better(value, other.value); });
  marks.insert(place, {value, member});
}

Bracket::Standing Bracket::StandingOf(uint32_t member) const {
  const auto is_of_member = [member](const Mark& mark) { return mark.member == member; };
  size_t level = std::min<size_t>(members_[member].level, marks_.size() - 1);
  auto mark = std::ranges::find_if(marks_[level], is_of_member);
  if (mark == marks_[level].end() && level > 0) {
    --level;
    mark = std::ranges::find_if(marks_[level], is_of_member);
  }
  const auto& marks = marks_[level];
  ATTUNE_CHECK(mark != marks.end());
  const int64_t continuing = ContinuingFrom(level);
  Standing standing{.rung = shape_.rungs[level],
                    .value = mark->value,
                    .rank = mark - marks.begin() + 1,
                    .peers = std::ssize(marks),
                    .continuing = continuing};
  if (standing.peers >= continuing)
    standing.cutoff = marks[static_cast<size_t>(continuing - 1)].value;
  return standing;
}

}  // namespace attune::schedulers
