#include "trainable/start/standalone_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

template <typename T>
bool ParseNumber(const std::string& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Config::Value ParseValue(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (std::int64_t integer; ParseNumber(text, integer)) return integer;
  if (double real; ParseNumber(text, real)) return real;
  return text;
}

int Refuse(const std::string& message) {
  std::cerr << message << "\nRun with --help for the options.\n";
  return 2;
}

// Checks an option; returns an empty text if it is valid.
std::string AtLeastZero(const std::string& text) {
  const char* const end = text.data() + text.size();
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && number >= 0
             ? ""
             : "`" + text + "` is not a whole number of at least 0";
}

}  // namespace

std::map<std::string, Config::Value> ParseAssignments(const std::string& text) {
  std::map<std::string, Config::Value> values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error("--config: \"" + part + "\" is not NAME=VALUE");
    }
    values[part.substr(0, equals)] = ParseValue(part.substr(equals + 1));
  }
  return values;
}

std::variant<StandaloneOptions, int> ParseStandaloneOptions(int argc, char** argv,
                                                            std::int64_t default_max_step) {
  StandaloneOptions options;
  options.max_step = default_max_step;
  std::vector<std::string> assignments;
  std::string device = "cpu";

  CLI::App app(
      "An Attune training program. A sweep runs it with `attune run sweep.yaml`; by hand it trains "
      "once, without a server.");
  app.add_option("--config", assignments, "Parameters: NAME=VALUE,NAME=VALUE; may be repeated")
      ->type_name("LIST");
  app.add_option("--workers", options.workers, "Data-parallel processes on this machine")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  auto* cpus =
      app.add_option(
             "--cpus", options.cpus_per_worker,
             "Threads per worker; default: the cores of this machine divided by the workers")
          ->check(CLI::Range(1, 1024));
  app.add_option("--max-step", options.max_step, "End after this step; 0: when the program ends")
      ->check(AtLeastZero, "NONNEGATIVE")
      ->capture_default_str();
  app.add_option("--checkpoint-dir", options.checkpoint_dir,
                 "Folder for checkpoints; without it none are kept");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "Steps between checkpoints; 0: at --max-step and once a minute; without "
                 "--max-step, at every step")
      ->check(AtLeastZero, "NONNEGATIVE")
      ->capture_default_str();
  app.add_option("--resume", options.resume,
                 "Folder of a checkpoint to resume from; --config overrides values of its "
                 "configuration");
  app.add_option("--device", device, "cpu, or cuda: worker N computes on GPU N")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();

  app.footer("Arguments after `--` are passed to the program.");

  char** const separator = std::find_if(
      argv, argv + argc, [](const char* arg) { return std::string_view(arg) == "--"; });
  if (separator != argv + argc) options.args.assign(separator + 1, argv + argc);

  try {
    app.parse(static_cast<int>(separator - argv), argv);
    std::map<std::string, Config::Value> values;
    if (!options.resume.empty()) values = CheckpointReader(options.resume).config().values();
    for (const std::string& text : assignments) {
      for (auto& [name, value] : ParseAssignments(text)) values[name] = std::move(value);
    }
    options.config = Config(std::move(values));
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return Refuse(error.what());
  } catch (const Error& error) {
    return Refuse(error.what());
  }
  if (cpus->count() == 0) {
    options.cpus_per_worker =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.workers);
  }
  options.cuda = device == "cuda";
  return options;
}

}  // namespace attune::inline sdk::trainable
