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

// One option of an algorithm: the table from which the sweep file is read, checked and documented.
// The type of `fallback` is the option's type; a required option has that type and no default.
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
  // The spec is complete and its options are checked against the table; the error names the key of
  // the sweep file that cannot be served ("parameters.lr: grid search needs a step or values").
  std::function<Result<std::unique_ptr<Algorithm>>(const SweepSpec&)> make;
};

// The searchers and schedulers there are.
class Algorithms {
 public:
  void Add(Entry<Searcher> entry) { searchers_.push_back(std::move(entry)); }
  void Add(Entry<Scheduler> entry) { schedulers_.push_back(std::move(entry)); }

  const std::vector<Entry<Searcher>>& searchers() const { return searchers_; }
  const std::vector<Entry<Scheduler>>& schedulers() const { return schedulers_; }
  const Entry<Searcher>* FindSearcher(std::string_view name) const;  // null when unknown
  const Entry<Scheduler>* FindScheduler(std::string_view name) const;

  // Gives the searcher and the scheduler of a stored spec the options that the table has got since,
  // with their fallbacks. Required ones have none, and stay missing.
  void Complete(SweepSpec& spec) const;

  // By the spec's searcher and scheduler.
  Result<std::unique_ptr<Searcher>> MakeSearcher(const SweepSpec& spec) const;
  Result<std::unique_ptr<Scheduler>> MakeScheduler(const SweepSpec& spec) const;

 private:
  std::vector<Entry<Searcher>> searchers_;
  std::vector<Entry<Scheduler>> schedulers_;
};

}  // namespace attune
