#include "cli/views/simulate_view.h"

#include <cmath>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

using simulate::Summary;

constexpr double kSecondsPerHour = 3600;
constexpr TrialState kFinal[] = {TrialState::kCompleted, TrialState::kStopped, TrialState::kFailed,
                                 TrialState::kKilled};

std::string Percent(double share) { return FormatNumber(std::round(1000 * share) / 10) + " %"; }
double FractionOf(double part, double whole) { return whole > 0 ? part / whole : 0; }

double SlotHours(const Simulated& simulated) {
  return simulated.summary.slot_seconds / kSecondsPerHour;
}

double GpuHours(const Simulated& simulated) {
  return SlotHours(simulated) * GpusPerWorker(simulated.spec.gang);
}

// The share of the slots that was used while the sweep ran.
double Utilisation(const Simulated& simulated) {
  return FractionOf(simulated.summary.slot_seconds,
                    simulated.summary.wall.value * simulated.assumed.slots);
}

std::string SlotsText(const Simulated& simulated) {
  const GangSpec& gang = simulated.spec.gang;
  const int gpus = gang.per_worker.gpus;
  const int executors = simulated.assumed.executors;
  const std::string each = gang.gpu_percent < 100 ? FormatNumber(GpusPerWorker(gang)) + " GPU"
                                                  : FormatCount(gpus, "GPU");
  return FormatCount(simulated.assumed.slots, "slot") + (gpus > 0 ? " of " + each : "") +
         (executors > 1 ? " on " + FormatCount(executors, "executor") : "");
}

std::string TrialsText(const Summary& summary) {
  std::string text;
  for (const TrialState state : kFinal) {
    if (summary.Count(state) > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(summary.Count(state)) + ' ' +
              std::string(Name(state));
  }
  return text.empty() ? "none" : text;
}

std::string BestText(const Simulated& simulated) {
  if (!simulated.summary.best) return "none";
  const Summary::Best& best = *simulated.summary.best;
  return simulated.spec.objective().metric + ' ' + FormatNumber(best.value) + ", trial " +
         std::to_string(best.trial.value) + " at step " + std::to_string(best.step.value) +
         ", after " + FormatDuration(best.at.value);
}

std::vector<std::string> RungTable(const Summary& summary, const Style& style) {
  Table table({{"RUNG", true}, {"REACHED", true}, {"STOPPED THERE", true}});
  for (const Summary::Rung& rung : summary.rungs) {
    table.Add({std::to_string(rung.step.value), std::to_string(rung.reached),
               std::to_string(rung.stopped)});
  }
  return table.Lines(style, 0);
}

}  // namespace

std::vector<std::string> SimulationSections(const Simulated& simulated, const Style& style) {
  const SweepSpec& spec = simulated.spec;
  const Summary& summary = simulated.summary;
  const std::string state(Name(summary.state));
  std::vector<std::string> lines;
  const auto field = [&](const std::string& name, const std::string& value) {
    lines.push_back(style.Paint(Colour::kDim, Pad(name, 12)) + "  " + Clean(value));
  };
  lines.push_back(style.Paint(Colour::kBold, Clean(spec.name)) + "  " +
                  style.Paint(ColourOfState(state), state));
  if (!summary.reason.empty()) field("reason", summary.reason);
  field("simulated", SlotsText(simulated) + ", curves " + simulated.curves + ", seed " +
                         std::to_string(spec.seed));
  field("time", FormatDuration(summary.wall.value));
  if (spec.gang.per_worker.gpus > 0) {
    field("GPU-hours", FormatNumber(GpuHours(simulated)));
  } else {
    field("slot-hours", FormatNumber(SlotHours(simulated)));
  }
  field("utilisation", Percent(Utilisation(simulated)) + " of the slots, at most " +
                           std::to_string(summary.peak_slots) + " at once");
  field("trials", TrialsText(summary));
  const auto steps = static_cast<double>(summary.steps);
  const auto in_full = static_cast<double>(summary.steps_in_full);
  field("steps", std::to_string(summary.steps) + " of " + std::to_string(summary.steps_in_full) +
                     " with no trial stopped, " + Percent(FractionOf(steps, in_full)));
  field("best", BestText(simulated));
  if (!summary.rungs.empty()) {
    lines.emplace_back();
    for (std::string& line : RungTable(summary, style)) lines.push_back(std::move(line));
  }
  return lines;
}

Json SimulationJson(const Simulated& simulated) {
  const SweepSpec& spec = simulated.spec;
  const Summary& summary = simulated.summary;
  Json trials = Json::object();
  for (const TrialState state : kFinal) trials[std::string(Name(state))] = summary.Count(state);
  Json rungs = Json::array();
  for (const Summary::Rung& rung : summary.rungs) {
    rungs.push_back(
        {{"step", rung.step.value}, {"reached", rung.reached}, {"stopped", rung.stopped}});
  }
  Json best;
  if (summary.best) {
    best = {{"trial", summary.best->trial.value},
            {"step", summary.best->step.value},
            {"metrics", {{spec.objective().metric, summary.best->value}}},
            {"seconds", summary.best->at.value}};
  }
  return {{"sweep", spec.name},
          {"state", Name(summary.state)},
          {"reason", summary.reason},
          {"slots", simulated.assumed.slots},
          {"executors", simulated.assumed.executors},
          {"curves", simulated.curves},
          {"seed", spec.seed},
          {"wall_seconds", summary.wall.value},
          {"slot_hours", SlotHours(simulated)},
          {"gpu_hours", GpuHours(simulated)},
          {"utilisation", Utilisation(simulated)},
          {"peak_slots", summary.peak_slots},
          {"trials", trials},
          {"steps", summary.steps},
          {"steps_in_full", summary.steps_in_full},
          {"best", best},
          {"rungs", rungs}};
}

}  // namespace attune::cli
