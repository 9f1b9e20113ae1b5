#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune {

// The reason of a verdict, as numbers and as a sentence (`text`). Absent numbers are NaN or 0.
struct Reason {
  std::string rule;                                          // "asha", "median", "max_step", …
  Step step{0};                                              // of the report that was judged
  Step rung{0};                                              // the rung it was recorded at; 0: none
  double value = std::numeric_limits<double>::quiet_NaN();   // the value that was judged
  double cutoff = std::numeric_limits<double>::quiet_NaN();  // the worst value that may continue
  int64_t rank = 0;                                          // place among peers; the best has 1
  int64_t peers = 0;  // how many trials were compared, this one included
  std::string text;
};

// The rule of the verdict that a running trial gets when its sweep is paused.
inline constexpr std::string_view kSweepPaused = "sweep_paused";
// The rule of the verdict that a trial gets when one of its executors is drained or about to end.
// The trial then continues on other executors.
inline constexpr std::string_view kExecutorDrained = "executor_drained";

// Whether the rule only moves or pauses trials and does not judge them.
inline bool IsOrder(std::string_view rule) {
  return rule == kSweepPaused || rule == kExecutorDrained;
}

enum class VerdictKind { kContinue, kPause, kStop, kExploit, kResize };

std::string_view Name(VerdictKind kind);  // continue, pause, stop, exploit, resize

// The answer to a report, from a scheduler or from the service itself. It always has a reason.
struct Verdict {
  VerdictKind kind = VerdictKind::kContinue;
  Reason reason;
  CheckpointId donor;  // kExploit: the checkpoint that the trial clones
  Config config;       // kExploit: the trial's new configuration

  static Verdict Continue(std::string text) { return Continue(Reason{.text = std::move(text)}); }
  static Verdict Continue(Reason reason) { return {.reason = std::move(reason)}; }
  static Verdict Stop(Reason reason) {
    return {.kind = VerdictKind::kStop, .reason = std::move(reason)};
  }
  static Verdict Pause(Reason reason) {
    return {.kind = VerdictKind::kPause, .reason = std::move(reason)};
  }
  // The trial continues from another trial's checkpoint, with a new configuration.
  static Verdict Exploit(const CheckpointId& donor, Config config, Reason reason) {
    return {VerdictKind::kExploit, std::move(reason), donor, std::move(config)};
  }
  // The trial saves a checkpoint and continues from it at once with more workers.
  static Verdict Resize(Reason reason) {
    return {.kind = VerdictKind::kResize, .reason = std::move(reason)};
  }
};

}  // namespace attune
