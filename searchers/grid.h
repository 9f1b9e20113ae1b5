#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/space/search_space.h"

namespace attune::searchers {

// Every configuration of the space once, in the order of nested loops over the parameters as the
// file lists them (a parent before what depends on it), the last one turning fastest. A parameter
// that does not exist beside its parents' values has no loop there, so that no configuration comes
// twice.
//
// The place in the grid is the number of trials it has been asked for and that were created.
// Nothing is held but that place. Where the space is edited, the new grid leaves out what an
// earlier one has proposed: all that lies before the place at which it was left.
class Grid final : public Searcher {
 public:
  // Configurations a grid may have. Far more gangs than anyone runs one by one: a larger grid is a
  // forgotten step.
  static constexpr int64_t kMaxConfigurations = 100'000;

  // Parameters, and values that their conditions list, times configurations. A space of 50 or more
  // may have fewer than kMaxConfigurations. To count so many takes a part of a second.
  static constexpr int64_t kMaxWork = 50 * kMaxConfigurations;

  // How many configurations the space has; the error names the parameter that cannot be counted, or
  // says that there are more than kMaxConfigurations, or too many for kMaxWork.
  static Result<int64_t> Count(const SearchSpace& space);

  // REQUIRES: Count(space) is ok; it is `count`, where that is given.
  explicit Grid(SearchSpace space);
  Grid(SearchSpace space, int64_t count);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  // The configurations of the space, up to a place among them.
  struct EarlierGrid {
    SearchSpace space;
    std::vector<int64_t> turns;
    bool exhausted = false;
  };

  static bool HasProposed(const EarlierGrid& past, const Config& config);
  Config CurrentConfig() const;
  // On to the first place from here that no earlier grid has proposed.
  void SkipProposed();
  // Turns the loops on by one; false: they have ended.
  bool Advance();
  // Puts every loop from this place of the order on to its first value.
  void Reset(size_t from);

  SearchSpace space_;
  int64_t count_;                // of configurations
  std::vector<int64_t> turns_;   // by place in order(): index of the value, kAbsent
  std::vector<int64_t> counts_;  // by place in order(), of values
  std::vector<bool> is_parent_;  // by place in parameters(): a condition names it
  int64_t place_ = 0;            // the same as a number, from 0
  bool exhausted_ = false;
  std::vector<EarlierGrid> earlier_;
};

Entry<Searcher> GridEntry();

}  // namespace attune::searchers
