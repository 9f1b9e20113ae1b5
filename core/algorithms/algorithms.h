#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/algorithms/scheduler.h"
#include "core/algorithms/searcher.h"
#include "core/log/sweep_spec.h"

namespace attune {

// An option of an algorithm. The sweep file is read, checked and documented from these. `fallback`
// is the default and also determines the type; of a required option it is only the type.
struct Option {
  std::string name;
  Value fallback;
  bool required = false;
  std::optional<double> min;  // numbers
  std::optional<double> max;
  std::vector<std::string> one_of;  // text
  std::string help;                 // one line
};

template <class Algorithm>
struct Entry {
  std::string name;
  std::string help;  // one line
  std::vector<Option> options;
  // Makes the algorithm for a complete spec whose options match the table. The error names the key
  // of the sweep file that the algorithm cannot serve ("parameters.lr: grid search needs a step or
  // values").
  std::function<Result<std::unique_ptr<Algorithm>>(const SweepSpec&)> make;
};

// The table of searchers and schedulers.
class Algorithms {
 public:
  void Add(Entry<Searcher> entry) { searchers_.push_back(std::move(entry)); }
  void Add(Entry<Scheduler> entry) { schedulers_.push_back(std::move(entry)); }

  const std::vector<Entry<Searcher>>& searchers() const { return searchers_; }
  const std::vector<Entry<Scheduler>>& schedulers() const { return schedulers_; }
  const Entry<Searcher>* FindSearcher(std::string_view name) const;  // null if unknown
  const Entry<Scheduler>* FindScheduler(std::string_view name) const;

  // Adds options that a stored spec lacks because they are newer, with their defaults. Required
  // options have no default and stay missing.
  void Complete(SweepSpec& spec) const;

  // Make the algorithms that the spec names.
  Result<std::unique_ptr<Searcher>> MakeSearcher(const SweepSpec& spec) const;
  Result<std::unique_ptr<Scheduler>> MakeScheduler(const SweepSpec& spec) const;

 private:
  std::vector<Entry<Searcher>> searchers_;
  std::vector<Entry<Scheduler>> schedulers_;
};

}  // namespace attune
