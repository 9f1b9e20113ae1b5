// Tunes a function of this program without a server: asks for configurations, tells the results,
// and saves the searcher's state in a file. The next run continues from that file.
//
//   in_process FILE TRIALS

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "searchers/ask_tell.h"

namespace {

using attune::searchers::AskTell;

// Stands for a measurement. The minimum is 0, at a pressure of 0.03 with 5 pumps and a flexible
// valve.
double Loss(const attune::Config& config) {
  const double pressure = std::get<double>(*config.Find("pressure"));
  const auto pumps = static_cast<double>(std::get<int64_t>(*config.Find("pumps")));
  const bool flexible = std::get<std::string>(*config.Find("valve")) == "flexible";
  return std::pow(std::log10(pressure) + 1.5, 2) + std::pow(pumps - 5, 2) / 20 +
         (flexible ? 0 : 0.5);
}

int Fail(const attune::Error& error) {
  std::cerr << "in_process: " << error.message << '\n';
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  const int trials = argc == 3 ? std::atoi(argv[2]) : 0;
  if (trials < 1) {
    std::cerr << "usage: in_process FILE TRIALS\n";
    return 2;
  }
  auto tuner = AskTell::Make(
      {{"pressure", attune::FloatDomain{.min = 1e-4, .max = 10, .scale = attune::Scale::kLog}},
       {"pumps", attune::IntDomain{.min = 1, .max = 12}},
       {"valve", attune::CategoricalDomain{{std::string("rigid"), std::string("flexible")}}}},
      {.searcher = "tpe", .seed = 7, .objectives = {attune::Minimise("loss")}});
  if (!tuner.ok()) return Fail(tuner.error());

  const std::string file = argv[1];
  if (std::ifstream saved(file, std::ios::binary); saved) {
    const std::string bytes{std::istreambuf_iterator<char>(saved), {}};
    if (const auto loaded = tuner->Load(bytes); !loaded.ok()) return Fail(loaded.error());
  }
  for (int i = 0; i < trials; ++i) {
    const auto trial = tuner->Ask();
    if (!trial) {
      std::cout << tuner->reason() << '\n';
      break;
    }
    const double loss = Loss(trial->config);
    if (const auto told = tuner->Tell(trial->number, loss); !told.ok()) return Fail(told.error());
    std::cout << "trial " << trial->number << "  loss " << loss << "  " << trial->rationale.text
              << '\n';
  }
  // Writes a new file and renames it, so that the file is complete after a crash.
  std::ofstream saved(file + ".new", std::ios::binary);
  saved << tuner->Save();
  saved.close();
  if (!saved || std::rename((file + ".new").c_str(), file.c_str()) != 0) {
    std::cerr << "in_process: " << file << " cannot be written: " << std::strerror(errno) << '\n';
    return 1;
  }

  for (const auto& best : tuner->best()) {
    std::cout << "best: trial " << best.trial << ", loss " << best.values[0] << '\n';
    for (const auto& [name, value] : best.config.entries())
      std::cout << "  " << name << " = " << attune::FormatValue(value) << '\n';
  }
}
