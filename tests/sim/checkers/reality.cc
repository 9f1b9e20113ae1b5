#include "tests/sim/checkers/reality.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/sim/service/gangs.h"

namespace attune::sim {
namespace {

// Two leases: longer than it takes to connect again and be answered.
constexpr int64_t kUndisturbedUs = 40'000'000;

}  // namespace

bool Reality::Reads(const std::string& executor, const std::string& path) const {
  const auto file = files_.find(path);
  return file != files_.end() && file->second == folders_.at(executor);
}

bool Reality::IsSent(const std::string& path) const {
  return std::ranges::any_of(connected_,
                             [&](const auto& entry) { return Reads(entry.first, path); });
}

void Reality::SweepDeleted(const std::string& path, const std::string& executor) {
  std::erase_if(files_, [&](const auto& file) {
    return file.first.starts_with(path + "/") && file.second == folders_.at(executor);
  });
}

void Reality::FileSaved(const std::string& path, const std::string& executor) {
  const auto there = files_.find(path);
  if (there != files_.end() && there->second == folders_.at(executor))
    findings_.Report(path + " is saved on " + executor + ", and is there already");
  files_[path] = folders_.at(executor);
}

void Reality::FoldersClaimed(const std::string& executor, const gang::GangSpec& spec) {
  const std::string& folder = folders_.at(executor);
  const auto erase = [&](const std::filesystem::path& below, const auto& is_unknown) {
    std::erase_if(files_, [&](const auto& file) {
      return file.second == folder && file.first.starts_with(below.string() + "/") &&
             is_unknown(std::filesystem::path(file.first));
    });
  };
  uint64_t& mark = marks_[{folder, spec.attempt.sweep}];
  if (std::exchange(mark, spec.identity) != spec.identity)
    erase(spec.sweep_dir, [](const auto&) { return true; });
  if (!spec.known || !claims_.emplace(folder, spec.attempt.epoch).second) return;
  erase(spec.checkpoint_dir, [&](const std::filesystem::path& path) {
    return !spec.known->checkpoints.contains(path.filename());
  });
}

void Reality::GangStarts(const std::string& executor, const gang::GangSpec& spec) {
  Gang gang{.attempt = IdOf(spec.attempt), .executor = executor};
  for (const gang::RankSlot& slot : spec.ranks) {
    gang.ranks.push_back(slot.rank);
    for (const int gpu : slot.gpus) gang.gpus[gpu] += slot.gpu_percent;
  }
  const std::string who = "attempt " + ToString(gang.attempt) + " on " + executor;

  for (const auto& [part, other] : gangs_) {
    if (!Moves(other)) continue;
    const bool other_part = part.first == Epoch(spec.attempt.epoch) &&
                            std::ranges::find_first_of(gang.ranks, other.ranks) == gang.ranks.end();
    if (other.attempt.trial == gang.attempt.trial && !other_part)
      findings_.Report(who + " starts while attempt " + ToString(other.attempt) + " runs on " +
                       other.executor);
  }
  for (const auto& [gpu, percent] : gang.gpus) {
    int held = percent;
    std::string holders;
    for (const auto& [part, other] : gangs_) {
      const auto found = other.gpus.find(gpu);
      if (!Moves(other) || other.executor != executor || found == other.gpus.end()) continue;
      held += found->second;
      holders += " " + ToString(other.attempt);
    }
    if (held > 100)
      findings_.Report(who + " starts on GPU " + std::to_string(gpu) + ", which is held by" +
                       holders);
  }
  // Rank 0 alone reads it, and others get it from there. Here it trains without waiting for them,
  // so that they may start when it has ended and what it went on from is gone.
  const bool reads =
      spec.resume && spec.HasRankZero() && (!restored_ || HasFile(spec.resume->path));
  if (reads && !HasFile(spec.resume->path))
    findings_.Report(who + " is to go on from " + spec.resume->path.string() + ", which is gone");
  if (reads && spec.fetch.has_value() == Reads(executor, spec.resume->path))
    findings_.Report(who + " is to go on from " + spec.resume->path.string() +
                     (spec.fetch ? ", and to fetch it, which it has" : ", which it cannot read"));
  gangs_.emplace(std::pair(Epoch(spec.attempt.epoch), executor), std::move(gang));
}

void Reality::MeetsAmiss(const AttemptId& attempt) {
  findings_.Report("attempt " + ToString(attempt) + " is to meet where its rank 0 is not");
}

void Reality::GangGone(Epoch epoch, const std::string& executor) {
  gangs_.erase({epoch, executor});
}

void Reality::GangDoomed(Epoch epoch, const std::string& executor) {
  const auto found = gangs_.find({epoch, executor});
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

void Reality::IsSuperseded(const std::string& executor) {
  findings_.Report("the only process of " + executor + " is told that another has its name");
}

const Time* Reality::ConnectedSince(const std::string& executor) const {
  const auto found = connected_.find(executor);
  return found == connected_.end() ? nullptr : &found->second;
}

bool Reality::Runs(Epoch epoch) const {
  return std::ranges::any_of(
      gangs_, [&](const auto& entry) { return entry.first.first == epoch && Moves(entry.second); });
}

bool Reality::Runs(Epoch epoch, const std::string& executor) const {
  const auto found = gangs_.find({epoch, executor});
  return found != gangs_.end() && Moves(found->second);
}

}  // namespace attune::sim
