#include "core/algorithms.h"

#include <algorithm>

namespace attune {
namespace {

template <class Algorithm>
const Entry<Algorithm>* Find(const std::vector<Entry<Algorithm>>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

template <class Algorithm>
Result<std::unique_ptr<Algorithm>> Make(const std::vector<Entry<Algorithm>>& entries,
                                        std::string_view kind, const std::string& name,
                                        const SweepSpec& spec) {
  if (const auto* entry = Find(entries, name)) return entry->make(spec);

  std::string known;
  for (const auto& entry : entries) known += (known.empty() ? "" : ", ") + entry.name;
  const std::string what(kind);
  return Error{ErrorCode::kInvalid,
               what + ".name: there is no " + what + " '" + name + "'; choose one of: " + known};
}

}  // namespace

const Entry<Searcher>* Algorithms::FindSearcher(std::string_view name) const {
  return Find(searchers_, name);
}

const Entry<Scheduler>* Algorithms::FindScheduler(std::string_view name) const {
  return Find(schedulers_, name);
}

Result<std::unique_ptr<Searcher>> Algorithms::MakeSearcher(const SweepSpec& spec) const {
  return Make(searchers_, "searcher", spec.searcher.name, spec);
}

Result<std::unique_ptr<Scheduler>> Algorithms::MakeScheduler(const SweepSpec& spec) const {
  return Make(schedulers_, "scheduler", spec.scheduler.name, spec);
}

}  // namespace attune
