#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune {

// A number of one kind. It does not convert implicitly to a number of another kind.
template <class Tag, class Rep>
struct Strong {
  Rep value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

using SweepId = Strong<struct SweepTag, uint64_t>;            // from 1; printed s1, s2, …
using TrialNumber = Strong<struct TrialTag, uint32_t>;        // from 0, within its sweep
using ProposalNumber = Strong<struct ProposalTag, uint32_t>;  // from 0, within its sweep
using Epoch = Strong<struct EpochTag, uint64_t>;  // lease epoch, from 1, over all attempts
// Numbers the processes of all executors, from 1.
using Incarnation = Strong<struct IncarnationTag, uint64_t>;
using EventSeq = Strong<struct SeqTag, uint64_t>;             // place in the log, from 1
using LogIdentity = Strong<struct LogIdentityTag, uint64_t>;  // random, below 2^53; 0: none
using Step = Strong<struct StepTag, int64_t>;  // training step, from 1; 0 is before the first one
using Seconds = Strong<struct SecondsTag, double>;

// Wall clock time in microseconds since 1970. It is always an argument, because core reads no
// clock.
struct Time {
  int64_t us = 0;
  auto operator<=>(const Time&) const = default;
};

struct TrialId {
  SweepId sweep;
  TrialNumber number;
  auto operator<=>(const TrialId&) const = default;

  TrialId() = default;
  TrialId(SweepId s, TrialNumber n) : sweep(s), number(n) {}
};

struct AttemptId {
  TrialId trial;
  uint32_t number = 0;  // from 1, within its trial
  auto operator<=>(const AttemptId&) const = default;
};

// Names a checkpoint by its trial, the attempt that saved it, and its step.
struct CheckpointId {
  TrialId trial;
  uint32_t attempt = 0;
  Step step;
  auto operator<=>(const CheckpointId&) const = default;
};

std::string ToString(SweepId id);                     // s1
std::string ToString(const TrialId& id);              // s1/17
std::string ToString(const AttemptId& id);            // s1/17.2
std::string ToString(const CheckpointId& id);         // s1/17/2-900: by attempt 2, at step 900
Result<SweepId> ParseSweepId(std::string_view text);  // s1
Result<TrialId> ParseTrialId(std::string_view text);  // s1/17

}  // namespace attune
