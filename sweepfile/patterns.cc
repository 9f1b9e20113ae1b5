#include "sweepfile/patterns.h"

#include <re2/re2.h>

#include <algorithm>

#include "sweepfile/keys.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {

std::unique_ptr<re2::RE2> ReadPattern(const Spot& spot, const std::string& text, Faults& faults) {
  if (text.empty()) {
    faults.AtValue(spot, "is empty; write what the line looks like, or remove it");
    return nullptr;
  }
  if (text.size() > kMaxPatternBytes) {
    faults.AtValue(spot, "longer than " + std::to_string(kMaxPatternBytes) + " bytes");
    return nullptr;
  }
  RE2::Options options;
  options.set_log_errors(false);
  auto pattern = std::make_unique<RE2>(text, options);
  if (pattern->ok()) return pattern;
  faults.AtValue(spot, "is no regular expression in the syntax of RE2: " + pattern->error());
  return nullptr;
}

std::vector<LogPolicy> ReadLogPolicies(const Spot& spot, Faults& faults) {
  std::vector<LogPolicy> policies;
  if (spot.node == nullptr) return policies;
  if (spot.node->kind != Node::Kind::kList) {
    faults.AtValue(spot,
                   "expected a list such as [{pattern: \"CUDA error\", action: exclude_host}], "
                   "found " +
                       Describe(*spot.node));
    return policies;
  }
  if (spot.node->items.size() > kMaxLogPolicies) {
    faults.AtValue(spot, "has more than " + std::to_string(kMaxLogPolicies) + " patterns");
    return policies;
  }
  for (size_t i = 0; i < spot.node->items.size(); ++i) {
    const Fields fields = ReadSection(LogPolicyKeys(), Item(spot, i), faults);
    if (fields.Find("pattern") == nullptr) continue;
    auto pattern = fields.Get<std::string>("pattern");
    if (ReadPattern(fields.spot("pattern"), pattern, faults) == nullptr) continue;
    if (std::ranges::find(policies, pattern, &LogPolicy::pattern) != policies.end()) {
      faults.AtValue(fields.spot("pattern"), "stands here twice; the first one would count");
      continue;
    }
    const auto action = LogActionNamed(fields.Get<std::string>("action"));
    policies.push_back({std::move(pattern), action.value_or(LogAction::kFail)});
  }
  return policies;
}

}  // namespace attune::sweepfile
