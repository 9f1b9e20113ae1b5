#include "searchers/model/population.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "searchers/model/fronts.h"
#include "searchers/model/rationale.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

size_t CapacityOf(const SweepSpec& spec) {
  return static_cast<size_t>(std::get<int64_t>(spec.searcher.options.at("population")));
}

}  // namespace

Population::Population(const SweepSpec& spec, Keeps keeps)
    : keeps_(keeps),
      capacity_(CapacityOf(spec)),
      record_(spec),
      prior_(record_),
      sobol_(record_.cube().size(), spec.seed) {}

std::vector<uint32_t> Population::BestOf(std::vector<uint32_t> trials, size_t count) const {
  std::ranges::sort(trials, [this](uint32_t a, uint32_t b) { return record_.Better(a, b); });
  return searchers::BestOf(record_, trials, count, FrontOrder::kCrowding);
}

Suggestion Population::Suggest(ProposalNumber proposal, RandomStream random,
                               const std::string& condition,
                               const std::function<Config(RandomStream&)>& breed,
                               const std::function<Rationale(const Config&)>& explain) const {
  const bool breeds = trials_.size() >= capacity_ && !RepeatsPrior(proposal);
  const auto propose = [&](int attempt) {
    return breeds && attempt < kModelAttempts ? breed(random)
                                              : ProposeStart(proposal, attempt, random);
  };
  return ProposeUntried(record_, propose, [&](int attempt, const Config& config) {
    if (breeds) return explain(config);
    return ExplainStart(proposal, attempt,
                        "until " + std::to_string(capacity_) + " trials " + condition);
  });
}

bool Population::IsNearPrior(ProposalNumber proposal) const {
  return !prior_.empty() && (RepeatsPrior(proposal) || proposal.value % 2 == 0);
}

// Halves the number: every second point alone would lie in one half of the first dimension.
ProposalNumber Population::PointOf(ProposalNumber proposal) const {
  return prior_.empty() ? proposal : ProposalNumber(proposal.value / 2);
}

Config Population::ProposeStart(ProposalNumber proposal, int attempt, RandomStream& random) const {
  if (attempt == 0 && RepeatsPrior(proposal)) return prior_.best()[proposal.value].config;
  const Cube& cube = record_.cube();
  if (attempt < kModelAttempts && IsNearPrior(proposal)) return prior_.Draw(cube, random);
  return cube.Build([&](size_t dimension) {
    const double u =
        attempt == 0 ? sobol_.Coordinate(dimension, PointOf(proposal).value) : random.Uniform();
    return cube.FromUniform(dimension, u);
  });
}

Rationale Population::ExplainStart(ProposalNumber proposal, int attempt,
                                   const std::string& until) const {
  if (attempt == 0 && RepeatsPrior(proposal)) return prior_.ExplainBest(proposal);
  if (IsNearPrior(proposal)) return prior_.ExplainDraw();
  return ExplainStartPoint(PointOf(proposal), attempt, until);
}

bool Population::IsAdmitted(uint32_t trial) const {
  const Standing worst = keeps_ == Keeps::kNewest ? Standing::kFailed : Standing::kInfeasible;
  return record_.trial(trial).standing <= worst;
}

void Population::Trim() {
  if (keeps_ == Keeps::kBest) {
    trials_ = BestOf(std::move(trials_), capacity_);
  } else if (trials_.size() > capacity_) {
    trials_.erase(trials_.begin(), trials_.end() - static_cast<ptrdiff_t>(capacity_));
  }
}

void Population::Observe(const Event& event) {
  const auto news = record_.Observe(event);
  if (!news) return;
  if (news->change == Record::Change::kPrior) {
    prior_ = Prior(record_);
    return;
  }
  std::erase(trials_, news->trial);
  if (!IsAdmitted(news->trial)) return;
  trials_.push_back(news->trial);
  Trim();
}

void Population::Adapt(const SweepSpec& spec) {
  capacity_ = CapacityOf(spec);
  record_.Adapt(spec);
  prior_ = Prior(record_);
  if (keeps_ == Keeps::kBest) {  // trials that were not among the best may be now
    trials_.resize(record_.size());
    std::iota(trials_.begin(), trials_.end(), 0);
  }
  std::erase_if(trials_, [this](uint32_t trial) { return !IsAdmitted(trial); });
  Trim();
}

void Population::Save(ArchiveWriter& archive) const {
  record_.Save(archive);
  archive(trials_);
}

void Population::Load(ArchiveReader& archive) {
  record_.Load(archive);
  prior_ = Prior(record_);
  archive(trials_);
  if (std::ranges::any_of(trials_, [&](uint32_t trial) { return trial >= record_.size(); })) {
    trials_.clear();
    archive.Fail();
  }
}

}  // namespace attune::searchers
