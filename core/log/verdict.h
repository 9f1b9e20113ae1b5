#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/space/value.h"

namespace attune {

// Why a verdict fell, in numbers, and in a sentence: `text`. Absent numbers are NaN or 0.
struct Reason {
  std::string rule;                                          // "asha", "median", "max_step", …
  Step step{0};                                              // of the report that was judged
  Step rung{0};                                              // the rung it was recorded at; 0: none
  double value = std::numeric_limits<double>::quiet_NaN();   // what was judged
  double cutoff = std::numeric_limits<double>::quiet_NaN();  // the worst value that still goes on
  int64_t rank = 0;   // place of the value among peers, best is 1
  int64_t peers = 0;  // how many were compared, this one included
  std::string text;
};

// The rule of the verdict that a running trial gets when its sweep is paused.
inline constexpr std::string_view kSweepPaused = "sweep_paused";
// And of the one that it gets when an executor it runs on is drained, or ends: it goes on
// elsewhere.
inline constexpr std::string_view kExecutorDrained = "executor_drained";

// Whether a verdict of this rule is nobody's judgement of the trial.
inline bool IsOrder(std::string_view rule) {
  return rule == kSweepPaused || rule == kExecutorDrained;
}

enum class VerdictKind { kContinue, kPause, kStop, kExploit, kResize };

std::string_view Name(VerdictKind kind);  // continue, pause, stop, exploit, resize

// What is said to a report, by a scheduler or by the service itself. Always with a reason.
struct Verdict {
  VerdictKind kind = VerdictKind::kContinue;
  Reason reason;
  CheckpointId donor;  // kExploit: the checkpoint that is cloned
  Config config;       // kExploit: what the trial goes on with

  static Verdict Continue(std::string text) { return Continue(Reason{.text = std::move(text)}); }
  static Verdict Continue(Reason reason) { return {.reason = std::move(reason)}; }
  static Verdict Stop(Reason reason) {
    return {.kind = VerdictKind::kStop, .reason = std::move(reason)};
  }
  static Verdict Pause(Reason reason) {
    return {.kind = VerdictKind::kPause, .reason = std::move(reason)};
  }
  // The trial goes on from another's checkpoint, with another configuration.
  static Verdict Exploit(const CheckpointId& donor, Config config, Reason reason) {
    return {VerdictKind::kExploit, std::move(reason), donor, std::move(config)};
  }
  // The trial goes on from here at once, as a gang of another size.
  static Verdict Resize(Reason reason) {
    return {.kind = VerdictKind::kResize, .reason = std::move(reason)};
  }
};

}  // namespace attune
