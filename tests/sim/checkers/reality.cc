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

bool Reality::CanRead(const std::string& executor, const std::string& path) const {
  const auto file = files_.find(path);
  return file != files_.end() && file->second == folders_.at(executor);
}

bool Reality::CanBeFetched(const std::string& path) const {
  return std::ranges::any_of(connected_,
                             [&](const auto& entry) { return CanRead(entry.first, path); });
}

void Reality::SweepDeleted(const std::string& path, const std::string& executor) {
  std::erase_if(files_, [&](const auto& file) {
    return file.first.starts_with(path + "/") && file.second == folders_.at(executor);
  });
}

void Reality::OnFileSaved(const std::string& path, const std::string& executor, bool is_lost) {
  const auto existing = files_.find(path);
  if (existing != files_.end() && existing->second == folders_.at(executor))
    findings_.Report(path + " is saved on " + executor + " but exists already");
  files_[path] = folders_.at(executor);
  if (is_lost) {
    of_lost_attempts_.insert(path);
  } else {
    of_lost_attempts_.erase(path);
  }
}

void Reality::OnFoldersClaimed(const std::string& executor, const gang::GangSpec& spec) {
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

void Reality::OnGangStarted(const std::string& executor, const gang::GangSpec& spec) {
  Gang gang{.attempt = IdOf(spec.attempt), .executor = executor};
  for (const gang::RankSlot& slot : spec.ranks) {
    gang.ranks.push_back(slot.rank);
    for (const int gpu : slot.gpus) gang.gpus[gpu] += slot.gpu_percent;
  }
  const std::string who = "attempt " + ToString(gang.attempt) + " on " + executor;

  for (const auto& [part, other] : gangs_) {
    if (!CanTrain(other)) continue;
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
      if (!CanTrain(other) || other.executor != executor || found == other.gpus.end()) continue;
      held += found->second;
      holders += " " + ToString(other.attempt);
    }
    if (held > 100)
      findings_.Report(who + " starts on GPU " + std::to_string(gpu) + ", which is held by" +
                       holders);
  }
  // Only rank 0 reads the checkpoint; the other ranks get the weights from it. In the simulation,
  // rank 0 does not wait for other parts. They may start after its end, when the checkpoint is
  // deleted.
  const bool reads =
      spec.resume && spec.HasRankZero() && (!restored_ || HasFile(spec.resume->path));
  if (reads && !HasFile(spec.resume->path))
    findings_.Report(who + " must resume from " + spec.resume->path.string() +
                     ", which does not exist");
  if (reads && spec.fetch.has_value() == CanRead(executor, spec.resume->path))
    findings_.Report(who + " must resume from " + spec.resume->path.string() +
                     (spec.fetch ? " and fetch it, although it has it" : ", which it cannot read"));
  gangs_.emplace(std::pair(Epoch(spec.attempt.epoch), executor), std::move(gang));
}

void Reality::OnWrongRendezvous(const AttemptId& attempt) {
  findings_.Report("attempt " + ToString(attempt) + " got a wrong address of its rank 0");
}

void Reality::OnGangEnded(Epoch epoch, const std::string& executor) {
  gangs_.erase({epoch, executor});
}

void Reality::MarkDoomed(Epoch epoch, const std::string& executor) {
  const auto found = gangs_.find({epoch, executor});
  if (found != gangs_.end()) found->second.doomed = true;
}

void Reality::SetFrozen(const std::string& executor, bool frozen) {
  if (frozen) {
    frozen_.insert(executor);
  } else {
    frozen_.erase(executor);
  }
}

void Reality::OnLeaseLost(const std::string& executor, Time now) {
  const auto calm = [now](Time since) { return now.us - since.us > kUndisturbedUs; };
  if (server_up_since_ && calm(*server_up_since_) && calm(disturbed_[executor]))
    findings_.Report("the gangs of " + executor +
                     " lose their lease although the server was up all the time");
}

void Reality::OnSuperseded(const std::string& executor) {
  findings_.Report("the only process of " + executor +
                   " was told that another process has its name");
}

const Time* Reality::ConnectedSince(const std::string& executor) const {
  const auto found = connected_.find(executor);
  return found == connected_.end() ? nullptr : &found->second;
}

bool Reality::IsRunning(Epoch epoch) const {
  return std::ranges::any_of(gangs_, [&](const auto& entry) {
    return entry.first.first == epoch && CanTrain(entry.second);
  });
}

bool Reality::IsRunning(Epoch epoch, const std::string& executor) const {
  const auto found = gangs_.find({epoch, executor});
  return found != gangs_.end() && CanTrain(found->second);
}

}  // namespace attune::sim
