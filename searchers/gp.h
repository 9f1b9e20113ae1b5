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
// Optimization of Expensive Black-Box Functions", Journal of Global Optimization 13, 1998): a model
// of the loss that says everywhere what it expects and how sure it is; proposed is where the best
// loss is expected to be improved the most.
//
// - The model and its prior: searchers/gaussian/covariance.h, process.h. Its hyperparameters are
//   fitted anew for each proposal, from the outcomes alone, so that it matters neither how often it
//   was asked nor what it proposed before.
// - What trials become as numbers: searchers/gaussian/outcomes.h. Trials that ended in any way
//   teach, completed ones by their loss, the others by their rank; but of a trial that failed where
//   most of its neighbours did not, nothing is known (a host broke, say), as if it still ran.
// - Of trials that still run some guesses are drawn; the improvement is the mean over these, so
//   that parallel proposals go apart.
// - Of several metrics each has a model of its own, and what is expected to improve is the
//   hypervolume of their front (searchers/gaussian/hypervolume.h).
// - With more than kTrustedWhole parameters it is sought near the best trial, nearer while nothing
//   improves (searchers/gaussian/trust_region.h); of several metrics everywhere, since a front need
//   not lie in one place.
// - The first trials are points of a Sobol sequence.
// - In a finite space nothing is proposed twice, and it is exhausted when all has been proposed.
//
// A suggestion costs n³/3 operations a metric for the n trials that it looks at, kMostObservations
// at most: the best half of them and the newest others. With several metrics the best are those of
// the first fronts (searchers/model/fronts.h).
class Gp final : public Searcher {
 public:
  struct Options {
    int64_t startup_trials = 0;  // 0: 4 + parameters, 20 at most
  };
  static constexpr size_t kMostObservations = 500;
  static constexpr size_t kGlobalDimensionsMax = 10;  // parameters

  // REQUIRES: options within the bounds of GpEntry().
  explicit Gp(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  bool Thinks() const override { return true; }
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override { record_.Save(archive); }
  void Load(ArchiveReader& archive) override;

 private:
  size_t StartupTrials() const;
  std::vector<uint32_t> Known() const;    // that have ended, the best first
  std::vector<uint32_t> Pending() const;  // that run, the newest ones
  std::vector<uint32_t> FailedByChance(const std::vector<uint32_t>& best_first) const;
  Point PointOf(uint32_t trial) const;
  std::unique_ptr<Acquisition> Model(const std::vector<uint32_t>& best_first,
                                     const std::vector<uint32_t>& pending,
                                     ProposalNumber proposal) const;
  Process ModelOf(size_t objective, const std::vector<uint32_t>& best_first,
                  const std::vector<uint32_t>& pending, RandomStream& random) const;
  Box SearchRegion(uint32_t best, const Acquisition& acquisition) const;
  // Nullopt where all that it comes upon has been tried.
  std::optional<ScoredPoint> Think(std::vector<uint32_t> best_first, ProposalNumber proposal) const;
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
