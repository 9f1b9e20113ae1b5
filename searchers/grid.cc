#include "searchers/grid.h"

#include "core/space/domain.h"

namespace attune::searchers {
namespace {

constexpr std::string_view kName = "grid";
constexpr int64_t kAbsent = -1;

Result<std::unique_ptr<Searcher>> Make(const SweepSpec& spec) {
  const Result<int64_t> count = Grid::Count(spec.space);
  if (!count.ok()) return count.error();
  return {std::make_unique<Grid>(spec.space)};
}

}  // namespace

Result<int64_t> Grid::Count(const SearchSpace& space) {
  for (const Parameter& parameter : space.parameters()) {
    if (!CountValues(parameter.domain)) {
      return Error{ErrorCode::kInvalid,
                   "parameters." + parameter.name +
                       ": grid search cannot list a real range; give it a step or values"};
    }
  }
  Grid grid(space);
  int64_t count = 1;
  while (grid.Advance()) {
    if (++count > kMaxConfigurations) {
      return Error{ErrorCode::kInvalid, "parameters: the grid has more than " +
                                            std::to_string(kMaxConfigurations) +
                                            " configurations; raise steps, list fewer values, or "
                                            "use searcher: random"};
    }
  }
  return count;
}

Grid::Grid(SearchSpace space) : space_(std::move(space)), turns_(space_.order().size()) {
  Reset(0);
}

Suggestion Grid::Suggest(ProposalNumber) const {
  if (exhausted_) return Exhausted{"every configuration of the grid has been proposed"};
  Config config;
  for (size_t i = 0; i < turns_.size(); ++i) {
    if (turns_[i] == kAbsent) continue;
    const Parameter& parameter = space_.parameters()[space_.order()[i]];
    config.Set(parameter.name, ValueAt(parameter.domain, turns_[i]));
  }
  return space_.Resolve(config).value();
}

void Grid::Observe(const Event& event) {
  const auto* created = std::get_if<TrialCreated>(&event.fact);
  if (created && created->origin == kName && !exhausted_) exhausted_ = !Advance();
}

void Grid::Adapt(const SweepSpec& spec) {
  if (spec.space.parameters() != space_.parameters()) *this = Grid(spec.space);
}

bool Grid::Advance() {
  for (size_t i = turns_.size(); i-- > 0;) {
    const Parameter& parameter = space_.parameters()[space_.order()[i]];
    if (turns_[i] == kAbsent || turns_[i] + 1 == *CountValues(parameter.domain)) continue;
    ++turns_[i];
    Reset(i + 1);
    return true;
  }
  return false;
}

void Grid::Reset(size_t from) {
  if (from == turns_.size()) return;  // the usual case: the fastest loop turned
  Config config;
  for (size_t i = 0; i < turns_.size(); ++i) {
    const Parameter& parameter = space_.parameters()[space_.order()[i]];
    if (i >= from) turns_[i] = space_.Active(parameter, config) ? 0 : kAbsent;
    if (turns_[i] != kAbsent) config.Set(parameter.name, ValueAt(parameter.domain, turns_[i]));
  }
}

Entry<Searcher> GridEntry() {
  return {.name = std::string(kName),
          .help = "every configuration once, in the order of the file; real ranges need a step",
          .options = {},
          .make = Make};
}

}  // namespace attune::searchers
