#include "core/brain/quarantine.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace attune {

void QuarantineIfItKeepsFailing(const State& state, const TrialId& trial,
                                const std::string& executor, Time now, Facts& facts) {
  const auto known = state.executors.find(executor);
  if (known == state.executors.end() || !TakesGangs(known->second)) return;
  const GangHistory& history = known->second.gang_history;
  std::set<TrialId> trials(history.failed.begin(), history.failed.end());
  trials.insert(trial);
  const size_t failures = history.failed.size() + 1;
  if (history.times == 0 && (failures < kFailuresInARow || trials.size() < kFailedTrials)) return;
  const auto does_well = [&](const auto& entry) {
    return entry.first != executor && TakesGangs(entry.second) && entry.second.gang_history.worked;
  };
  const auto other = std::ranges::find_if(state.executors, does_well);
  if (other == state.executors.end()) return;
  const double seconds =
      std::min(kQuarantine.value * std::exp2(history.times), kQuarantineMax.value);
  const std::string what = history.times > 0 ? "a gang failed there again"
                                             : std::to_string(failures) + " gangs of " +
                                                   std::to_string(trials.size()) +
                                                   " trials failed there in a row";
  facts.push_back(ExecutorQuarantined{executor,
                                      what + ", but not on " + other->first +
                                          "; no gang starts there for " + FormatShort(seconds) +
                                          " s",
                                      Time{now.us + static_cast<int64_t>(seconds * 1e6)}});
}

void EndQuarantine(const State& state, Time now, const Agenda& agenda, Facts& facts) {
  if (agenda.QuarantinedExecutors().empty()) return;
  const auto first = std::ranges::min_element(
      agenda.QuarantinedExecutors(), {},
      [](const auto& entry) { return std::tuple(entry.second, entry.first); });
  const bool others = std::ranges::any_of(
      state.executors, [](const auto& entry) { return TakesGangs(entry.second); });
  if (first->second <= now) {
    facts.push_back(ExecutorQuarantineEnded{first->first, "its time is over"});
  } else if (!others) {
    facts.push_back(ExecutorQuarantineEnded{first->first, "no other executor takes gangs"});
  }
}

}  // namespace attune
