#include "sweepfile/reports.h"

#include <re2/re2.h>

#include "sweepfile/keys.h"
#include "sweepfile/patterns.h"

namespace attune::sweepfile {
namespace {

constexpr std::string_view kStep = "step";

void CheckGroups(const RE2& pattern, const SweepSpec& spec, const Spot& spot, Faults& faults) {
  const auto& groups = pattern.NamedCapturingGroups();
  std::string names;
  for (const auto& [name, number] : groups) names += (names.empty() ? "" : ", ") + name;
  const auto check = [&](const std::string& metric) {
    if (metric.empty() || (groups.contains(metric) && metric != kStep)) return;
    const bool can_be = RE2::FullMatch(metric, R"([\pL\pN_]+)") && metric != kStep;
    faults.AtValue(
        spot, can_be ? "has no group (?P<" + metric + ">…) for the metric " + metric +
                           (names.empty() ? "; it has none with a name" : "; it has " + names)
                     : "the metric " + metric +
                           " cannot be a group's name, which is made of letters, digits and _, and "
                           "is not step; call the metric otherwise");
  };
  for (const std::string& metric : spec.ReportedMetrics()) check(metric);
}

}  // namespace

std::string ReadReportPattern(const Fields& file, const SweepSpec& spec, Faults& faults) {
  if (!file.Given("command")) return "";  // told with the other keys about a program
  const Spot& section = file.spot("reports");
  const Fields reports = ReadSection(ReportsKeys(), section, faults);
  const bool map = section.node != nullptr && section.node->kind == Node::Kind::kMap;
  if (map && section.node->entries.empty())
    faults.AtValue(section, "says nothing; give pattern, or remove it");
  if (reports.Find("pattern") == nullptr) return "";
  const Spot& spot = reports.spot("pattern");
  const auto text = reports.Get<std::string>("pattern");
  if (const auto pattern = ReadPattern(spot, text, faults))
    CheckGroups(*pattern, spec, spot, faults);
  return text;
}

}  // namespace attune::sweepfile
