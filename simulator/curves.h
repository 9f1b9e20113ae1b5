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

// What a trial would report, step by step, whether it gets there or not.
class Curves {
 public:
  virtual ~Curves() = default;

  // Of the sweep's metric. REQUIRES: step >= 1. The same arguments give the same value.
  virtual double ValueAt(TrialNumber trial, const Config& config, Step step) const = 0;

  // The metrics that it knows beside that one: all those of a report at this step, or none.
  virtual Metrics OthersAt(TrialNumber, Step) const { return {}; }

  // The step of the next report after this one.
  virtual Step NextReport(TrialNumber, Step after) const { return Step(after.value + 1); }

  // How long it takes to come to this report from the one before; nullopt: the curves do not say.
  virtual std::optional<Seconds> SecondsOf(TrialNumber, Step) const { return std::nullopt; }

  // The step after which a program that is given no last one ends; 0: the curves do not say.
  virtual Step End(TrialNumber) const { return Step(0); }

  // How the program ends by itself after this step, whatever the last one; nullopt: it goes on.
  virtual std::optional<Outcome> EndsAfter(TrialNumber, Step) const { return std::nullopt; }
};

// The shapes of made-up curves:
//
//   power-law     falls as step^-a to its own floor (Hestness et al., arXiv:1712.00409)
//   exponential   falls as exp(-step/t) to its floor
//   crossing      whoever ends well starts slowly, so that early values mislead
//   late-bloomer  flat, then a fall at a step of its own
//   plateau       falls by half of the way, stays there for a while, and goes on
//   diverging     one in five configurations turns to NaN on its way
//   mixed         each trial has one of these
const std::vector<std::string>& CurveModels();

// A trial's floor comes from its configuration: the nearer each parameter is to a place drawn from
// the seed, the lower. Losses lie between 0 and 1; an objective to maximise gets 1 − loss.
// `horizon` is the step by which most of the way is gone.
//
// Errors: kInvalid, with the models there are.
Result<std::unique_ptr<Curves>> MakeCurves(std::string_view model, const Objective& objective,
                                           const SearchSpace& space, Step horizon, uint64_t seed);

}  // namespace attune::simulate
