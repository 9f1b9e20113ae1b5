#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/prior.h"
#include "searchers/model/record.h"
#include "searchers/model/sobol_sequence.h"

namespace attune::searchers {

struct Box;
class Acquisition;
class Process;
struct ScoredPoint;

// Bayesian optimisation with a Gaussian process (Jones, Schonlau and Welch, "Efficient Global
// Optimization of Expensive Black-Box Functions", Journal of Global Optimization 13, 1998). The
// model predicts a mean and a variance of the loss at each point. A proposal is the point with the
// largest expected improvement over the best loss.
//
// - The model and its prior: searchers/gaussian/covariance.h, process.h. Its hyperparameters are
//   fitted again for each proposal, and depend only on the outcomes, not on earlier proposals.
// - The outcomes: searchers/gaussian/outcomes.h. All trials that have ended count: completed ones
// by
//   their loss, the others by their rank. A failure among neighbours that did not fail is taken for
//   chance, such as a broken host. The trial then counts as pending.
// - For pending trials, several outcomes are sampled. The improvement is the mean over the samples,
//   which keeps parallel proposals apart.
// - With several metrics, each has a model, and the expected improvement is that of the hypervolume
//   of the front (searchers/gaussian/hypervolume.h).
// - With more than kGlobalDimensionsMax parameters, only a region around the best trial is
// searched.
//   It shrinks while nothing improves (searchers/gaussian/trust_region.h). With several metrics the
//   whole space is searched, because a front may lie in several regions.
// - The first trials are points of a Sobol sequence.
// - In a finite space nothing is proposed twice, and the search ends when everything was proposed.
//
// A suggestion costs n³/3 operations per metric. The n trials of the model are at most
// kMostObservations: the best ones make up half, and the newest of the others the rest. With
// several metrics, the best are those on the first fronts (searchers/model/fronts.h).
class Gp final : public Searcher {
 public:
  struct Options {
    int64_t startup_trials = 0;  // 0: 4 + parameters, at most 20
  };
  static constexpr size_t kMostObservations = 500;
  static constexpr size_t kGlobalDimensionsMax = 10;

  // REQUIRES: options within the bounds of GpEntry().
  explicit Gp(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  bool NeedsThread() const override { return true; }
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override { record_.Save(archive); }
  void Load(ArchiveReader& archive) override;

 private:
  size_t StartupTrials() const;
  std::vector<uint32_t> EndedTrials() const;    // the best first
  std::vector<uint32_t> RunningTrials() const;  // the newest first, at most kMostPending
  // The failed trials whose failure is taken for chance.
  std::vector<uint32_t> FailedByChance(const std::vector<uint32_t>& best_first) const;
  Point PointOf(uint32_t trial) const;
  std::unique_ptr<Acquisition> MakeAcquisition(const std::vector<uint32_t>& best_first,
                                               const std::vector<uint32_t>& pending,
                                               ProposalNumber proposal) const;
  Process MakeProcess(size_t objective, const std::vector<uint32_t>& best_first,
                      const std::vector<uint32_t>& pending, RandomStream& random) const;
  // REQUIRES: at least StartupTrials() trials have ended.
  Box SearchRegion(uint32_t best, const Acquisition& acquisition) const;
  // Nullopt if all candidates have been tried.
  std::optional<ScoredPoint> MostPromisingPoint(std::vector<uint32_t> best_first,
                                                ProposalNumber proposal) const;
  Rationale Explain(const std::vector<uint32_t>& best_first, const Config& config,
                    double log_improvement) const;

  Options options_;
  uint64_t seed_;
  Record record_;
  SobolSequence sobol_;
  Prior prior_;
};

Entry<Searcher> GpEntry();

}  // namespace attune::searchers
