#include "tests/sim/reality.h"

#include <algorithm>

#include "tests/sim/gangs.h"

namespace attune::sim {
namespace {

// Two leases: longer than it takes to connect again and be answered.
constexpr int64_t kUndisturbedUs = 40'000'000;

}  // namespace

void Reality::GangStarts(const std::string& executor, const gang::GangSpec& spec) {
  Gang gang{.attempt = IdOf(spec.attempt), .executor = executor};
  for (const gang::RankSlot& slot : spec.ranks)
    gang.gpus.insert(gang.gpus.end(), slot.gpus.begin(), slot.gpus.end());
  const std::string who = "attempt " + ToString(gang.attempt) + " on " + executor;

  for (const auto& [epoch, other] : gangs_) {
    if (!Moves(other)) continue;
    if (other.attempt.trial == gang.attempt.trial)
      findings_.Report(who + " starts while attempt " + ToString(other.attempt) + " runs on " +
                       other.executor);
    const bool shares = std::ranges::any_of(
        gang.gpus, [&](int gpu) { return std::ranges::find(other.gpus, gpu) != other.gpus.end(); });
    if (other.executor == executor && shares)
      findings_.Report(who + " starts on a GPU that attempt " + ToString(other.attempt) + " holds");
  }
  if (spec.resume && !HasFile(spec.resume->path))
    findings_.Report(who + " is to go on from " + spec.resume->path.string() + ", which is gone");
  gangs_.emplace(Epoch(spec.attempt.epoch), std::move(gang));
}

void Reality::GangGone(Epoch epoch) { gangs_.erase(epoch); }

void Reality::GangDoomed(Epoch epoch) {
  const auto found = gangs_.find(epoch);
  if (found != gangs_.end()) found->second.doomed = true;
}

void Reality::HostStandsStill(const std::string& executor, bool still) {
  if (still) {
    still_.insert(executor);
  } else {
    still_.erase(executor);
  }
}

void Reality::LosesLease(const std::string& executor, Time now) {
  const auto calm = [now](Time since) { return now.us - since.us > kUndisturbedUs; };
  if (listens_since_ && calm(*listens_since_) && calm(disturbed_[executor]))
    findings_.Report("the gangs of " + executor +
                     " are torn down for their lease, and the server was there all the time");
}

const Time* Reality::ConnectedSince(const std::string& executor) const {
  const auto found = connected_.find(executor);
  return found == connected_.end() ? nullptr : &found->second;
}

bool Reality::Runs(Epoch epoch) const {
  const auto found = gangs_.find(epoch);
  return found != gangs_.end() && Moves(found->second);
}

}  // namespace attune::sim
