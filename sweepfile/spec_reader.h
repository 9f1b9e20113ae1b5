#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/log/sweep_spec.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {

// Reads the root map of a sweep file into a spec. It sets what the file gives, and defaults that
// depend only on the field. If there are faults, the spec stays incomplete.
class SpecReader {
 public:
  // If `algorithms` is null, a searcher or scheduler may have any name and options. REQUIRES: the
  // arguments outlive the reader.
  SpecReader(const Node& root, const Algorithms* algorithms, Faults& faults);

  SweepSpec& spec() { return spec_; }
  const Fields& file() const { return sections_.at(""); }
  const Fields& section(std::string_view name) const { return sections_.find(name)->second; }

 private:
  void ReadRows();
  void ReadObjectives();
  void ReadObjective(const Spot& spot);
  void ReadGpus();
  Fields ReadAlgorithm(const std::string& name);
  void ReadOptions(const std::string& name, AlgorithmSpec& algorithm);

  const Algorithms* algorithms_;
  Faults& faults_;
  std::map<std::string, Fields, std::less<>> sections_;  // "" is the file
  std::map<std::string, std::vector<std::string>> options_;
  SweepSpec spec_;
};

}  // namespace attune::sweepfile
