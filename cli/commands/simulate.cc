#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/check_sweep.h"
#include "cli/commands/command.h"
#include "cli/views/simulate_view.h"
#include "simulator/recorded_curves.h"
#include "simulator/simulation.h"

namespace attune::cli {
namespace {

constexpr uint64_t kMaxSeed = (uint64_t{1} << 53) - 1;
constexpr double kMinStepSeconds = 1e-6;
constexpr double kMaxStepSeconds = 1e6;

struct SimulateFlags {
  std::string file;
  std::string curves = "power-law";
  simulate::Assumptions assumed;
  std::optional<uint64_t> seed;
  OutputFlags output;

  void AddTo(CLI::App& command) {
    AddSweepFile(command, file);
    command.add_option("--slots", assumed.slots, "Workers that run at once")
        ->check(CLI::Range(1, kMaxSimulatedSlots))
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--executors", assumed.executors, "Hosts that share the slots evenly")
        ->check(CLI::Range(1, kMaxSimulatedSlots))
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--curves", curves,
                    "Simulated reports: a model, or a CSV of `attune db export --what reports`")
        ->type_name("MODEL|FILE")
        ->capture_default_str();
    command
        .add_option("--step-seconds", assumed.step.value,
                    "Seconds per step, if the curves have no times")
        ->check(CLI::Range(kMinStepSeconds, kMaxStepSeconds))
        ->type_name("S")
        ->capture_default_str();
    command.add_option("--seed", seed, "Random seed (default: the sweep file's)")
        ->check(CLI::Range(uint64_t{0}, kMaxSeed))
        ->type_name("N");
    output.AddTo(command);
    output.AddJson(command);
  }
};

// `name`: a model or, if there is none with that name, a CSV file.
Result<std::unique_ptr<simulate::Curves>> CurvesFor(const std::string& name,
                                                    const SweepSpec& spec) {
  const auto& models = simulate::CurveModels();
  std::error_code error;
  const bool is_file =
      std::filesystem::exists(name, error) && !std::filesystem::is_directory(name, error);
  if (error) return Error{ErrorCode::kUnavailable, "cannot read " + name + ": " + error.message()};
  if (!is_file || std::ranges::find(models, name) != models.end()) {
    auto curves =
        simulate::MakeCurves(name, spec.objective(), spec.space, spec.max_step, spec.seed);
    if (!curves.ok())
      return Error{curves.error().code, curves.error().message + ", or name a CSV file"};
    return curves;
  }
  std::ifstream file(name, std::ios::binary);
  const int code = errno;
  const std::string csv{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    return Error{ErrorCode::kUnavailable, "cannot read " + name + ": " + std::strerror(code)};
  auto recorded = simulate::ReadCurves(csv, name, spec.objective().metric);
  if (!recorded.ok()) return recorded.error();
  return {std::make_unique<simulate::RecordedCurves>(std::move(recorded).value())};
}

ExitCode Simulate(const SimulateFlags& flags, Console& console) {
  flags.output.Apply(console);
  const Result<SweepDocument> document = SweepDocument::Read(flags.file);
  if (!document.ok()) return Fail(console, document.error());
  CheckedSweep checked = CheckSweep(*document, ProgramCheck::kSkip);
  if (!checked.spec.has_value()) {
    console.err.PrintLines(checked.faults);
    return ExitCode::kUsage;
  }
  SweepSpec& spec = *checked.spec;
  spec.seed = flags.seed.value_or(spec.seed);
  const auto curves = CurvesFor(flags.curves, spec);
  if (!curves.ok()) return Fail(console, curves.error());

  const auto summary = simulate::Simulate(spec, AllAlgorithms(), **curves, flags.assumed);
  if (!summary.ok()) {
    return Fail(console, {summary.error().code, flags.file + ": " + summary.error().message});
  }
  const Simulated simulated{spec, flags.assumed, flags.curves, *summary};
  if (flags.output.json()) {
    console.out.Print(Dump(SimulationJson(simulated), 2));
  } else {
    console.out.PrintLines(SimulationSections(simulated, console.out.style()));
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Action& chosen) {
  AddCommand<SimulateFlags>(app, chosen, "simulate",
                            "Estimate time and cost of a sweep in virtual time", Simulate);
}

}  // namespace attune::cli
