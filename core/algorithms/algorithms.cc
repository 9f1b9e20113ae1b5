#include "core/algorithms/algorithms.h"

#include <algorithm>

#include "base/result.h"

namespace attune {
namespace {

template <class Algorithm>
const Entry<Algorithm>* Find(const std::vector<Entry<Algorithm>>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

template <class Algorithm>
void CompleteFrom(const std::vector<Entry<Algorithm>>& entries, AlgorithmSpec& algorithm) {
  const auto* entry = Find(entries, algorithm.name);
  if (entry == nullptr) return;
  for (const Option& option : entry->options) {
    if (!option.required) algorithm.options.try_emplace(option.name, option.fallback);
  }
}

template <class Algorithm>
Result<std::unique_ptr<Algorithm>> Make(const std::vector<Entry<Algorithm>>& entries,
                                        const std::string& kind, const AlgorithmSpec& algorithm,
                                        const SweepSpec& spec) {
  if (const auto* entry = Find(entries, algorithm.name)) {
    for (const Option& option : entry->options) {
      const auto given = algorithm.options.find(option.name);
      if (given == algorithm.options.end() || given->second.index() != option.fallback.index())
        return Error{ErrorCode::kInvalid,
                     kind + "." + option.name + ": missing or of the wrong type: " + option.help};
    }
    return entry->make(spec);
  }

  std::string known;
  for (const auto& entry : entries) known += (known.empty() ? "" : ", ") + entry.name;
  return Error{ErrorCode::kInvalid,
               kind + ".name: unknown " + kind + " '" + algorithm.name + "'; use one of: " + known};
}

}  // namespace

const Entry<Searcher>* Algorithms::FindSearcher(std::string_view name) const {
  return Find(searchers_, name);
}

const Entry<Scheduler>* Algorithms::FindScheduler(std::string_view name) const {
  return Find(schedulers_, name);
}

void Algorithms::Complete(SweepSpec& spec) const {
  CompleteFrom(searchers_, spec.searcher);
  CompleteFrom(schedulers_, spec.scheduler);
}

Result<std::unique_ptr<Searcher>> Algorithms::MakeSearcher(const SweepSpec& spec) const {
  return Make(searchers_, "searcher", spec.searcher, spec);
}

Result<std::unique_ptr<Scheduler>> Algorithms::MakeScheduler(const SweepSpec& spec) const {
  return Make(schedulers_, "scheduler", spec.scheduler, spec);
}

}  // namespace attune
