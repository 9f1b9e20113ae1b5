#include "slurm/text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "pilots/text.h"

namespace attune::slurm {
namespace {

std::optional<int64_t> ParseWholeNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

template <size_t n>
bool IsOneOf(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 7> kPending = {
    "PENDING",      "CONFIGURING",   "REQUEUED",    "REQUEUE_FED",
    "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"};
constexpr std::array<std::string_view, 3> kEnding = {"COMPLETING", "STAGE_OUT", "SIGNALING"};
constexpr std::array<std::string_view, 11> kEnded = {
    "BOOT_FAIL",     "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
    "OUT_OF_MEMORY", "LAUNCH_FAILED", "PREEMPTED", "REVOKED",  "TIMEOUT"};

}  // namespace

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::chrono::seconds> ParseTimeLimit(std::string_view text) {
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto whole = ParseWholeNumber(text.substr(0, dash));
    if (!whole) return std::nullopt;
    days = *whole;
    text = text.substr(dash + 1);
  }
  std::vector<int64_t> parts;
  for (const std::string& part : Split(text, ':')) {
    const auto whole = ParseWholeNumber(part);
    if (!whole) return std::nullopt;
    parts.push_back(*whole);
  }
  if (parts.size() > 3) return std::nullopt;
  // After days, the first part is hours. Without days, one part is minutes, and two parts are
  // minutes and seconds.
  if (dash == std::string_view::npos && parts.size() < 3) parts.insert(parts.begin(), 0);
  parts.resize(3, 0);
  return std::chrono::seconds(((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2]);
}

int CountGpus(std::string_view gres) {
  int64_t gpus = 0;
  int depth = 0;
  std::string plain;  // without (S:0-1)
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) plain += c;
    if (c == ')') --depth;
  }
  for (const std::string& resource : Split(plain, ',')) {
    const std::vector<std::string> words = Split(pilots::Trim(resource), ':');
    if (words[0] != "gpu") continue;
    gpus += words.size() == 1 ? 1 : ParseWholeNumber(words.back()).value_or(1);
  }
  return static_cast<int>(gpus);
}

pilots::Phase PhaseOf(std::string_view state) {
  if (IsOneOf(state, kPending)) return pilots::Phase::kPending;
  if (IsOneOf(state, kEnding)) return pilots::Phase::kEnding;
  if (IsOneOf(state, kEnded)) return pilots::Phase::kEnded;
  return pilots::Phase::kRunning;
}

}  // namespace attune::slurm
