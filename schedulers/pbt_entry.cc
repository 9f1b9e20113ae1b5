#include "schedulers/pbt.h"

#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/result.h"
#include "schedulers/text.h"

// The entries of pbt and pb2.
namespace attune::schedulers {
namespace {

constexpr const char* kPbt = "pbt";
constexpr const char* kPb2 = "pb2";

// "lr, momentum"
std::set<std::string> Names(const std::string& list) {
  std::set<std::string> names;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    const auto first = item.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    names.insert(item.substr(first, item.find_last_not_of(' ') + 1 - first));
  }
  return names;
}

Result<std::unique_ptr<Scheduler>> MakePbt(const SweepSpec& spec) {
  const Pbt::Options options = Pbt::OptionsOf(spec);
  if (options.max == Step(0)) return MissingMax(spec.scheduler.name);
  if (options.interval >= options.max.value) {
    return Error{ErrorCode::kInvalid, "scheduler.perturbation_interval: " + Text(options.interval) +
                                          " is not below max " + Text(options.max) +
                                          ", so no member would be ranked; lower it or raise max"};
  }
  if (options.population == 0) {
    return Error{ErrorCode::kInvalid, "scheduler.population: " + spec.scheduler.name +
                                          " needs the size of the population; set it, or "
                                          "stop.max_trials"};
  }
  for (const std::string& name : options.exploration.parameters) {
    if (spec.space.Find(name) != nullptr) continue;
    return Error{ErrorCode::kInvalid, "scheduler.explore: there is no parameter \"" + name +
                                          "\"; name parameters of the sweep, separated by commas"};
  }
  return {std::make_unique<Pbt>(spec.objective(), spec.space, spec.seed, options)};
}

std::vector<Option> CommonOptions() {
  return {{.name = "perturbation_interval",
           .fallback = int64_t{1},
           .min = 1,
           .help = "Steps between decisions of a trial"},
          {.name = "quantile_fraction",
           .fallback = 0.25,
           .min = 0.01,
           .max = 0.5,
           .help = "Fraction of the population that clones, and fraction that is cloned"},
          {.name = "population",
           .fallback = int64_t{0},
           .min = 0,
           .help = "Number of members; 0: stop.max_trials"},
          {.name = "explore",
           .fallback = std::string(),
           .help = "Parameters that a clone may change, separated by commas: lr, momentum. It "
                   "copies the others from its donor; empty: all"},
          {.name = "synchronous",
           .fallback = false,
           .help = "Whether all members wait for each other at each decision"}};
}

}  // namespace

Pbt::Options Pbt::OptionsOf(const SweepSpec& spec) {
  const auto& options = spec.scheduler.options;
  const bool bandit = spec.scheduler.name == kPb2;
  const auto real = [&](const char* name) { return std::get<double>(options.at(name)); };
  const auto integer = [&](const char* name) { return std::get<int64_t>(options.at(name)); };
  const int64_t population = integer("population");
  Exploration exploration{.parameters = Names(std::get<std::string>(options.at("explore")))};
  if (!bandit) {
    exploration.resample_probability = real("resample_probability");
    exploration.smaller = real("smaller_factor");
    exploration.larger = real("larger_factor");
  }
  return {.interval = integer("perturbation_interval"),
          .fraction = real("quantile_fraction"),
          .population = population > 0 ? population : spec.stop.max_trials,
          .max_trials = spec.stop.max_trials,
          .exploration = std::move(exploration),
          .max = spec.max_step,
          .synchronous = std::get<bool>(options.at("synchronous")),
          .bandit = bandit};
}

Entry<Scheduler> PbtEntry() {
  Entry<Scheduler> entry{
      .name = kPbt,
      .help =
          "Bad members of a population clone good ones, and change their configuration; needs max",
      .options = CommonOptions(),
      .make = MakePbt};
  entry.options.insert(
      entry.options.begin() + 2,
      {{.name = "resample_probability",
        .fallback = 0.25,
        .min = 0,
        .max = 1,
        .help = "Probability that a parameter is drawn again instead of perturbed"},
       {.name = "smaller_factor",
        .fallback = 0.8,
        .min = 0,
        .max = 1,
        .help = "Factor for numbers in half of the perturbations"},
       {.name = "larger_factor",
        .fallback = 1.2,
        .min = 1,
        .max = 100,
        .help = "Factor for numbers in the other half"}});
  return entry;
}

Entry<Scheduler> Pb2Entry() {
  return {.name = kPb2,
          .help = "As pbt, but a model of past gains chooses the numbers of clones; needs max",
          .options = CommonOptions(),
          .make = MakePbt};
}

}  // namespace attune::schedulers
