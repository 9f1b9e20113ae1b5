#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/space/search_space.h"

namespace attune::searchers {

// Grid search: each configuration of the space once, in the order of nested loops over the
// parameters. The loops are nested in the order of the file, with parents outside the parameters
// that depend on them; the last loop is the innermost. A parameter that is absent for the current
// values of its parents has no loop there, so no configuration is proposed twice.
//
// The searcher remembers only its position, which advances when a trial is created from its
// proposal. After an edit of the space, the new grid skips the configurations that the earlier
// grids had proposed before their positions.
class Grid final : public Searcher {
 public:
  // Maximum number of configurations. A larger grid is almost always a mistake, such as a range
  // without a suitable step.
  static constexpr int64_t kMaxConfigurations = 100'000;

  // Maximum of the work for counting: the number of parameters and of values in their conditions,
  // times the number of configurations. It takes less than a second. A space with 50 or more
  // parameters may therefore have fewer than kMaxConfigurations.
  static constexpr int64_t kMaxWork = 50 * kMaxConfigurations;

  // Returns the number of configurations. Errors: a parameter has infinitely many values, or the
  // number exceeds kMaxConfigurations or the limit of kMaxWork.
  static Result<int64_t> Count(const SearchSpace& space);

  // REQUIRES: Count(space) is ok, and equals `count` if that is given.
  explicit Grid(SearchSpace space);
  Grid(SearchSpace space, int64_t count);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  // The grid of an earlier space, and the position at which it was left.
  struct EarlierGrid {
    SearchSpace space;
    std::vector<int64_t> turns;
    bool exhausted = false;
  };

  static bool HasProposed(const EarlierGrid& past, const Config& config);
  Config CurrentConfig() const;
  // Advances to the first configuration that no earlier grid has proposed.
  void SkipProposed();
  // Advances the loops by one configuration. Returns false at the end.
  bool Advance();
  // Sets the loops from index `from` of order() to their first values.
  void ResetLoops(size_t from);

  SearchSpace space_;
  int64_t count_;                // number of configurations
  std::vector<int64_t> turns_;   // by index in order(): the index of the value, or kInactive
  std::vector<int64_t> counts_;  // by index in order(): the number of values
  std::vector<bool> is_parent_;  // by index in parameters(): whether a condition names it
  int64_t place_ = 0;            // number of the current configuration, from 0
  bool exhausted_ = false;
  std::vector<EarlierGrid> earlier_;
};

Entry<Searcher> GridEntry();

}  // namespace attune::searchers
