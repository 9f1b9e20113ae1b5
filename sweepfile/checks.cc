#include "sweepfile/checks.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>

#include "base/message_limits.h"
#include "sweepfile/keys.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

// Maximum size of a compiled regular expression, in bytes. A short text such as \pL{1000} can need
// much memory and time.
constexpr int64_t kMaxPatternMemory = 1 << 20;

// Compiles a regular expression; null, with a fault, if it is invalid.
std::unique_ptr<RE2> ReadPattern(const Spot& spot, const std::string& text, Faults& faults) {
  if (text.size() > kMaxPatternBytes) {
    faults.AtValue(spot, "longer than " + std::to_string(kMaxPatternBytes) + " bytes; shorten it");
    return nullptr;
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxPatternMemory);
  auto pattern = std::make_unique<RE2>(text, options);
  if (pattern->ok()) return pattern;
  faults.AtValue(spot, "is not a valid regular expression (RE2): " + pattern->error());
  return nullptr;
}

constexpr size_t kMaxUrlBytes = 4096;

bool IsDataName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_inner = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxNameChars && is_letter(name.front()) &&
         std::ranges::all_of(name, is_inner);
}

void CheckUrl(const Spot& spot, const std::string& url, Faults& faults) {
  const bool is_known =
      url.starts_with("http://") || url.starts_with("https://") || url.starts_with("file:///");
  if (!is_known || url.size() > kMaxUrlBytes || HasControlCharacters(url) ||
      url.find(' ') != url.npos)
    return faults.AtValue(spot,
                          "is not an address that hosts can download; write one that begins with "
                          "https://, http:// or file:///");
  const size_t host = url.find("://") + 3;
  const std::string_view authority = std::string_view(url).substr(host, url.find('/', host) - host);
  if (authority.find('@') != authority.npos)
    faults.AtValue(spot,
                   "has a password, which everybody who sees the sweep can read; put it into the "
                   "file ~/.netrc of the hosts");
}

}  // namespace

Spot KeyIn(const Spot& spot, std::string_view name) {
  const MapEntry* entry = spot.node == nullptr ? nullptr : spot.node->Find(name);
  if (entry != nullptr) return Child(spot, *entry);
  return {nullptr, spot.place.Key(name), spot.mark};
}

void CheckElement(const std::vector<Constraint>& constraints, const Spot& spot, Faults& faults) {
  const auto& [metric, min, max] = constraints.back();
  if (min && max && *min > *max)
    faults.AtValue(KeyIn(spot, "max"), FormatReal(*max) + " is below min " + FormatReal(*min) +
                                           "; swap them or raise max");
}

void CheckElement(const std::vector<Threshold>& thresholds, const Spot& spot, Faults& faults) {
  const Threshold& threshold = thresholds.back();
  if (threshold.at_least && threshold.at_most && *threshold.at_least <= *threshold.at_most)
    faults.AtValue(KeyIn(spot, "at_least"),
                   FormatReal(*threshold.at_least) + " is not above at_most " +
                       FormatReal(*threshold.at_most) +
                       ", so every value would end the trial; raise at_least or lower at_most");
}

void CheckElement(const std::vector<LogPolicy>& policies, const Spot& spot, Faults& faults) {
  const std::string& text = policies.back().pattern;
  const Spot pattern = KeyIn(spot, "pattern");
  if (text.empty() || ReadPattern(pattern, text, faults) == nullptr) return;  // told already
  if (std::ranges::count(policies, text, &LogPolicy::pattern) > 1)
    faults.AtValue(pattern,
                   "is listed twice, and only the first entry has an effect; remove one of them");
}

void CheckElement(const std::vector<PatchedCode>& patched, const Spot& spot, Faults& faults) {
  if (!patched.back().digest.empty() && !IsDigest(patched.back().digest))
    faults.AtValue(KeyIn(spot, "digest"),
                   "is not a digest; write sha256: and 64 hexadecimal digits");
}

void CheckElement(std::vector<DataSpec>& data, const Spot& spot, Faults& faults) {
  DataSpec& file = data.back();
  if (file.name.empty() || file.url.empty() || file.sha256.empty()) return;  // already a fault
  const auto is_same = [&](const DataSpec& each) {
    return DataVariable(each.name) == DataVariable(file.name);
  };
  if (!IsDataName(file.name)) {
    faults.AtValue(KeyIn(spot, "name"),
                   "is not a valid name of data; begin with a letter, and use letters, digits, -, "
                   "_ and points");
  } else if (std::ranges::count_if(data, is_same) > 1) {
    faults.AtValue(KeyIn(spot, "name"), "has the same variable " + DataVariable(file.name) +
                                            " as " + std::ranges::find_if(data, is_same)->name +
                                            "; rename one of them");
  }
  CheckUrl(KeyIn(spot, "url"), file.url, faults);
  std::ranges::transform(file.sha256, file.sha256.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (!IsDigest("sha256:" + file.sha256))
    faults.AtValue(KeyIn(spot, "sha256"),
                   "is not a SHA-256; write the 64 hexadecimal digits that `sha256sum FILE` "
                   "prints");
}

void CompletePlateau(const Spot& spot, SweepSpec& spec, Faults& faults) {
  Plateau& plateau = *spec.stop.plateau;
  const Spot metric = KeyIn(spot, "metric");
  const Spot mode = KeyIn(spot, "mode");
  if (metric.node == nullptr) plateau.metric.metric = spec.objective().metric;
  if (metric.node != nullptr) CheckName(metric, plateau.metric.metric, faults);
  if (plateau.std && plateau.patience < 2)
    faults.AtValue(KeyIn(spot, "patience"),
                   "must be 2 or more if std is given, because one value has no deviation");
  if (mode.node != nullptr) return;
  const auto known = std::ranges::find(spec.objectives, plateau.metric.metric, &Objective::metric);
  plateau.metric.mode = known != spec.objectives.end() ? known->mode : Mode::kMin;
  if (known == spec.objectives.end() && !plateau.std)
    faults.AtValue(metric,
                   plateau.metric.metric + " is not a metric of the sweep; add mode, min or max");
}

void CheckReportPattern(const Spot& spot, const SweepSpec& spec, Faults& faults) {
  const auto pattern = ReadPattern(spot, spec.program.report_pattern, faults);
  if (pattern == nullptr) return;
  const auto& groups = pattern->NamedCapturingGroups();
  std::string names;
  for (const auto& [name, number] : groups) names += (names.empty() ? "" : ", ") + name;
  for (const std::string& metric : spec.ReportedMetrics()) {
    const bool is_step = metric == "step";
    if (metric.empty() || (groups.contains(metric) && !is_step)) continue;
    const bool can_be = RE2::FullMatch(metric, R"([\pL\pN_]+)") && !is_step;
    faults.AtValue(spot,
                   can_be ? "has no group (?P<" + metric + ">…) for the metric " + metric +
                                (names.empty() ? "; add it"
                                               : "; add it, or rename one of its groups: " + names)
                          : "the metric " + metric +
                                " cannot be the name of a group; rename the metric, with only "
                                "letters, digits and _, and not step");
  }
}

}  // namespace attune::sweepfile
