#include "base/result.h"
#include "schedulers/asha.h"

#include "schedulers/text.h"

// How asha, extrapolate and pasha are made from a sweep file.
namespace attune::schedulers {
namespace {

Result<std::unique_ptr<Scheduler>> MakeAsha(const SweepSpec& spec) {
  const Asha::Options options = Asha::OptionsOf(spec);
  if (options.max == Step(0)) {
    return Error{ErrorCode::kInvalid, "scheduler.max: " + spec.scheduler.name +
                                          " needs max, the step at which a trial is complete"};
  }
  if (options.min >= options.max) {
    return Error{ErrorCode::kInvalid,
                 "scheduler.min: " + Text(options.min) + " is not below max " + Text(options.max) +
                     ", so all would be trained to their end; lower min or raise max"};
  }
  if (const int64_t rungs = options.RungsBelowMax(); options.brackets > rungs) {
    return Error{ErrorCode::kInvalid,
                 "scheduler.brackets: " + std::to_string(options.brackets) +
                     " are more than the rungs below max, of which there are " +
                     std::to_string(rungs)};
  }
  return {std::make_unique<Asha>(spec.objective(), options)};
}

Option MinOption() {
  return {.name = "min",
          .fallback = int64_t{1},
          .min = 1,
          .help = "step of the first rung: the least a trial trains"};
}

Option FactorOption(int64_t fallback) {
  return {.name = "reduction_factor",
          .fallback = fallback,
          .min = 2,
          .help = "one in so many goes on, and each rung is so many times further"};
}

}  // namespace

Asha::Options Asha::OptionsOf(const SweepSpec& spec) {
  const auto& options = spec.scheduler.options;
  const bool plain = spec.scheduler.name == kAsha;
  const bool promotes = !plain || std::get<std::string>(options.at("mode")) == "promote";
  return {.min = Step(std::get<int64_t>(options.at("min"))),
          .max = spec.max_step,
          .reduction_factor = std::get<int64_t>(options.at("reduction_factor")),
          .form = promotes ? Form::kPromote : Form::kStop,
          .extrapolates = spec.scheduler.name == kExtrapolate,
          .progresses = spec.scheduler.name == kPasha,
          .brackets = plain ? std::get<int64_t>(options.at("brackets")) : 1,
          .seed = spec.seed};
}

int64_t Asha::Options::RungsBelowMax() const {
  int64_t rungs = 0;
  for (int64_t step = min.value; step < max.value; step *= reduction_factor) {
    ++rungs;
    if (step > max.value / reduction_factor) break;  // the product is beyond max
  }
  return rungs;
}

Entry<Scheduler> AshaEntry() {
  return {.name = Asha::kAsha,
          .help = "trains on only those among the best at growing steps; needs max",
          .options = {MinOption(),
                      {.name = "mode",
                       .fallback = std::string("stop"),
                       .one_of = {"stop", "promote"},
                       .help = "stop the others for good, or pause every trial at each rung and "
                               "promote the best with the slots that are free"},
                      FactorOption(4),
                      {.name = "brackets",
                       .fallback = int64_t{1},
                       .min = 1,
                       .help = "each next one begins a rung later, for values that mislead early; "
                               "a trial's is drawn"}},
          .make = MakeAsha};
}

Entry<Scheduler> ExtrapolateEntry() {
  return {.name = Asha::kExtrapolate,
          .help = "pauses at growing steps, and promotes those whose curves go furthest; needs max",
          .options = {MinOption(), FactorOption(3)},
          .make = MakeAsha};
}

Entry<Scheduler> PashaEntry() {
  return {.name = Asha::kPasha,
          .help =
              "asha's promotions, up to a step that grows while the last two rungs rank "
              "differently; needs max",
          .options = {MinOption(), FactorOption(3)},
          .make = MakeAsha};
}

}  // namespace attune::schedulers
