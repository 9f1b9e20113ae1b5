#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/base/ids.h"
#include "core/log/event.h"
#include "core/space/objective.h"
#include "core/space/search_space.h"

namespace attune::simulate {

// The learning curves of trials: the values that a trial would report at each step.
class Curves {
 public:
  virtual ~Curves() = default;

  // The value of the sweep's metric at `step`. Equal arguments give equal values.
  // REQUIRES: step >= 1.
  virtual double ValueAt(TrialNumber trial, const Config& config, Step step) const = 0;

  // All metrics of the report at this step; empty if the curves know only the sweep's metric.
  virtual Metrics MetricsAt(TrialNumber, Step) const { return {}; }

  // The step of the first report after step `after`.
  virtual Step NextReport(TrialNumber, Step after) const { return Step(after.value + 1); }

  // The training time between the previous report and the report at this step; nullopt if unknown.
  virtual std::optional<Seconds> SecondsOf(TrialNumber, Step) const { return std::nullopt; }

  // The step at which the program ends if the sweep sets no last step; 0 if unknown.
  virtual Step LastStep(TrialNumber) const { return Step(0); }

  // How the program ends after this step without an order to stop; nullopt if it continues.
  virtual std::optional<Outcome> OutcomeAfter(TrialNumber, Step) const { return std::nullopt; }
};

// The models of generated curves:
//
//   power-law     falls as step^-a to the trial's floor (Hestness et al., arXiv:1712.00409)
//   exponential   falls as exp(-step/t) to the trial's floor
//   crossing      a trial with a good final value starts slowly, so early values mislead
//   late-bloomer  is flat, then falls at a step that differs between trials
//   plateau       falls half of the way, stays there for a while, then falls to the floor
//   diverging     one configuration in five reports NaN from some step on
//   mixed         each trial has one of these models
const std::vector<std::string>& CurveModels();

// Generates curves from a model. The floor of a trial depends on its configuration: it is lower if
// the parameters are closer to an optimum, which is drawn from the seed. Losses lie between 0 and
// 1; an objective to maximise gets 1 − loss. At the step `horizon`, a curve is close to its floor.
//
// Errors: kInvalid if no model has this name; the message lists the models.
Result<std::unique_ptr<Curves>> MakeCurves(std::string_view model, const Objective& objective,
                                           const SearchSpace& space, Step horizon, uint64_t seed);

}  // namespace attune::simulate
