#include "searchers/grid.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "core/log/fields.h"
#include "core/space/domain.h"
#include "searchers/model/limit.h"

namespace attune::searchers {
namespace {

constexpr std::string_view kName = "grid";
constexpr int64_t kInactive = -1;

Result<std::unique_ptr<Searcher>> MakeGrid(const SweepSpec& spec) {
  if (auto error = CheckNoWarmStart(spec, "grid")) return *error;
  const Result<int64_t> count = Grid::Count(spec.space);
  if (!count.ok()) return count.error();
  return {std::make_unique<Grid>(spec.space, *count)};
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
  int64_t work = 1;  // for each configuration
  for (const Parameter& parameter : space.parameters()) {
    ++work;
    for (const Condition& condition : parameter.when) work += std::ssize(condition.any_of);
  }
  const int64_t most = std::clamp<int64_t>(kMaxWork / work, 1, kMaxConfigurations);
  const Error too_many{ErrorCode::kInvalid, "parameters: the grid has more than " +
                                                std::to_string(most) +
                                                " configurations; raise steps, list fewer values, "
                                                "or use searcher: {name: random}"};
  // A lower bound: the product over the parameters that always exist.
  int64_t least = 1;
  for (const Parameter& parameter : space.parameters()) {
    if (!parameter.when.empty()) continue;
    const int64_t values = *CountValues(parameter.domain);
    if (values > most / least) return too_many;
    least *= values;
  }
  Grid grid(space, 0);
  int64_t count = 1;
  while (grid.Advance()) {
    if (++count > most) return too_many;
  }
  return count;
}

Grid::Grid(SearchSpace space) : Grid(space, Count(space).value()) {}

Grid::Grid(SearchSpace space, int64_t count)
    : space_(std::move(space)), count_(count), turns_(space_.order().size()) {
  for (const size_t place : space_.order())
    counts_.push_back(*CountValues(space_.parameters()[place].domain));
  is_parent_.resize(turns_.size());
  for (const Parameter& parameter : space_.parameters()) {
    for (const Condition& condition : parameter.when)
      is_parent_[*space_.PlaceOf(condition.parent)] = true;
  }
  ResetLoops(0);
}

Suggestion Grid::Suggest(ProposalNumber) const {
  if (exhausted_) return Exhausted{"every configuration of the grid has been proposed"};
  return Proposed{
      CurrentConfig(),
      {.rule = "grid",
       .text = "configuration " + std::to_string(place_ + 1) + " of " + std::to_string(count_)}};
}

Config Grid::CurrentConfig() const {
  Config config;
  for (size_t i = 0; i < turns_.size(); ++i) {
    if (turns_[i] == kInactive) continue;
    const Parameter& parameter = space_.parameters()[space_.order()[i]];
    config.Set(parameter.name, ValueAt(parameter.domain, turns_[i]));
  }
  return space_.Resolve(config).value();
}

void Grid::Observe(const Event& event) {
  const auto* created = std::get_if<TrialCreated>(&event.fact);
  if (!created || created->origin != kName || exhausted_) return;
  exhausted_ = !Advance();
  SkipProposed();
}

void Grid::Adapt(const SweepSpec& spec) {
  if (spec.space.parameters() == space_.parameters()) return;
  std::vector<EarlierGrid> earlier = std::move(earlier_);
  earlier.push_back({std::move(space_), std::move(turns_), exhausted_});
  *this = Grid(spec.space);
  earlier_ = std::move(earlier);
  SkipProposed();
}

void Grid::SkipProposed() {
  const auto proposed = [this] {
    const Config here = CurrentConfig();
    return std::ranges::any_of(earlier_,
                               [&](const EarlierGrid& past) { return HasProposed(past, here); });
  };
  if (earlier_.empty()) return;
  while (!exhausted_ && proposed()) exhausted_ = !Advance();
}

bool Grid::HasProposed(const EarlierGrid& past, const Config& config) {
  std::vector<int64_t> turns;
  size_t present = 0;
  for (const size_t place : past.space.order()) {
    const Parameter& parameter = past.space.parameters()[place];
    const Value* value = config.Find(parameter.name);
    turns.push_back(kInactive);
    if (value == nullptr) continue;
    ++present;
    const int64_t count = *CountValues(parameter.domain);
    int64_t turn = 0;
    while (turn < count && ValueAt(parameter.domain, turn) != *value) ++turn;
    if (turn == count) return false;
    turns.back() = turn;
  }
  if (present != config.entries().size()) return false;
  return past.exhausted || turns < past.turns;
}

void Grid::Save(ArchiveWriter& archive) const {
  archive(turns_, place_, exhausted_, earlier_.size());
  for (const EarlierGrid& past : earlier_) archive(past.space, past.turns, past.exhausted);
}

void Grid::Load(ArchiveReader& archive) {
  size_t earlier = 0;
  archive(turns_, place_, exhausted_, earlier);
  for (earlier_.clear(); archive.ok() && earlier > 0; --earlier) {
    EarlierGrid& past = earlier_.emplace_back();
    archive(past.space, past.turns, past.exhausted);
  }
}

bool Grid::Advance() {
  for (size_t i = turns_.size(); i-- > 0;) {
    if (turns_[i] == kInactive || turns_[i] + 1 == counts_[i]) continue;
    ++turns_[i];
    ++place_;
    ResetLoops(i + 1);
    return true;
  }
  return false;
}

void Grid::ResetLoops(size_t from) {
  if (from == turns_.size()) return;  // the usual case: the innermost loop advanced
  std::vector<Value> parents(turns_.size());
  SearchSpace::Values values(turns_.size());
  for (size_t i = 0; i < turns_.size(); ++i) {
    const size_t place = space_.order()[i];
    const Parameter& parameter = space_.parameters()[place];
    if (i >= from) turns_[i] = space_.IsActive(parameter, values) ? 0 : kInactive;
    if (turns_[i] == kInactive || !is_parent_[place]) continue;
    parents[place] = ValueAt(parameter.domain, turns_[i]);
    values[place] = &parents[place];
  }
}

Entry<Searcher> GridEntry() {
  return {
      .name = std::string(kName),
      .help = "Tries every configuration once, in the order of the file; float ranges need a step",
      .options = {},
      .make = MakeGrid};
}

}  // namespace attune::searchers
