// Registers the searchers of `thinking_attune`: the normal ones, and one whose proposals take time.
// The linker uses this definition instead of searchers/register.cc in the library.
#include "searchers/register.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/result.h"
#include "core/base/random.h"
#include "searchers/grid.h"
#include "searchers/random.h"

namespace attune::searchers {
namespace {

// Each proposal takes `think_ms`. Proposals improve with the number of observed reports, so they
// depend on how much of the log the searcher has read.
class Thinker final : public Searcher {
 public:
  explicit Thinker(const SweepSpec& spec) { Adapt(spec); }

  bool NeedsThread() const override { return true; }

  Suggestion Suggest(ProposalNumber proposal) const override {
    std::this_thread::sleep_for(takes_);
    Config config;
    for (const Parameter& parameter : space_.parameters()) {
      const auto& range = std::get<FloatDomain>(parameter.domain);
      const double seen = static_cast<double>(reports_) / (static_cast<double>(reports_) + 10);
      RandomStream stream(seed_, proposal, "thinker/" + parameter.name);
      const double place = std::clamp(seen + 0.1 * (stream.Uniform() - 0.5), 0.0, 1.0);
      config.Set(parameter.name, range.min + place * (range.max - range.min));
    }
    return Proposed{std::move(config), {.rule = "toy", .text = "what it has thought"}};
  }

  void Observe(const Event& event) override {
    if (std::holds_alternative<TrialReported>(event.fact)) ++reports_;
  }
  void Adapt(const SweepSpec& spec) override {
    space_ = spec.space;
    seed_ = spec.seed;
    takes_ = std::chrono::milliseconds(std::get<int64_t>(spec.searcher.options.at("think_ms")));
  }
  void Save(ArchiveWriter& archive) const override { archive(reports_); }
  void Load(ArchiveReader& archive) override { archive(reports_); }

 private:
  SearchSpace space_;
  uint64_t seed_ = 0;
  std::chrono::milliseconds takes_{0};
  int64_t reports_ = 0;
};

Result<std::unique_ptr<Searcher>> Make(const SweepSpec& spec) {
  for (const Parameter& parameter : spec.space.parameters()) {
    if (!std::holds_alternative<FloatDomain>(parameter.domain))
      return Error{ErrorCode::kInvalid, "parameters." + parameter.name + ": must be a real range"};
  }
  return {std::make_unique<Thinker>(spec)};
}

}  // namespace

void RegisterSearchers(Algorithms& algorithms) {
  algorithms.Add(RandomEntry());
  algorithms.Add(GridEntry());
  algorithms.Add(Entry<Searcher>{.name = "thinker",
                                 .help = "thinks, for tests",
                                 .options = {{.name = "think_ms",
                                              .fallback = int64_t{20},
                                              .min = 0,
                                              .max = 10'000,
                                              .help = "how long a proposal takes"}},
                                 .make = Make});
}

}  // namespace attune::searchers
