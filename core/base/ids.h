#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace attune {

// A number that does not turn into another kind of number by itself.
template <class Tag, class Rep>
struct Strong {
  Rep value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

using SweepId = Strong<struct SweepTag, uint64_t>;            // from 1; printed s1, s2, …
using TrialNumber = Strong<struct TrialTag, uint32_t>;        // from 0, within its sweep
using ProposalNumber = Strong<struct ProposalTag, uint32_t>;  // of a searcher, from 0, in a sweep
using Epoch = Strong<struct EpochTag, uint64_t>;  // lease epoch, from 1, over all attempts
using Incarnation = Strong<struct IncarnationTag, uint64_t>;  // of an executor, from 1, over all
using EventSeq = Strong<struct SeqTag, uint64_t>;             // place in the log, from 1
using LogIdentity = Strong<struct LogIdentityTag, uint64_t>;  // random, below 2^53; 0: none
using Step = Strong<struct StepTag, int64_t>;  // of training, from 1; 0 is before any
using Seconds = Strong<struct SecondsTag, double>;

// Wall clock, microseconds since 1970. Always an argument: core reads no clock.
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

// A trial's checkpoint at a step, by the attempt that saved it.
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
