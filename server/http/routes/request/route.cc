#include "server/http/routes/request/route.h"

#include <algorithm>
#include <string>

#include "base/message_limits.h"
#include "base/parse_number.h"

namespace attune::server {
namespace {

std::string_view NextSegment(std::string_view& rest) {
  const size_t end = std::min(rest.find('/'), rest.size());
  const std::string_view segment = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return segment;
}

// A whole number from 1 on, without leading zeros.
template <class T>
std::optional<T> ParsePositive(std::string_view text) {
  if (text.starts_with('0') || text.starts_with('-')) return std::nullopt;
  return ParseNumber<T>(text);
}

// Parses {attempt}-{step}.
bool ReadCheckpoint(std::string_view segment, Target& target) {
  const size_t dash = segment.find('-');
  if (dash == segment.npos) return false;
  const auto attempt = ParsePositive<uint32_t>(segment.substr(0, dash));
  const auto step = ParsePositive<int64_t>(segment.substr(dash + 1));
  if (!attempt || !step) return false;
  target.attempt = *attempt;
  target.step = Step(*step);
  return true;
}

bool ReadSegment(std::string_view pattern, std::string_view segment, Target& target) {
  if (pattern == "{sweep}") {
    const auto id = ParseSweepId(segment);
    if (id.ok()) target.trial.sweep = *id;
    return id.ok();
  }
  if (pattern == "{trial}") {
    const auto id = ParseTrialId(ToString(target.sweep()) + "/" + std::string(segment));
    if (id.ok()) target.trial = *id;
    return id.ok();
  }
  if (pattern == "{checkpoint}") return ReadCheckpoint(segment, target);
  if (pattern == "{executor}") {
    target.executor = segment;
    return !segment.empty();
  }
  if (pattern == "{token}") {
    target.token = segment;
    return !segment.empty();
  }
  if (pattern == "{code}") {
    target.code = "sha256:" + std::string(segment);
    return IsDigest(target.code);
  }
  return !pattern.empty() && pattern == segment;
}

}  // namespace

Path Path::Split(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || text.find('/', colon) != text.npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::optional<Target> Match(std::string_view pattern, std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  Target target;
  while (!pattern.empty() || !path.empty()) {
    const std::string_view expected = NextSegment(pattern);
    if (!ReadSegment(expected, NextSegment(path), target)) return std::nullopt;
  }
  return target;
}

}  // namespace attune::server
