#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/log/event.h"

namespace attune::server {

// How a fact lies in the log: a row's columns and, as JSON, what they do not say: an object, for
// reports an array (measured_form.h).
//
// Kinds are the names of the facts in snake_case. Doubles come back bit for bit (the strings "nan",
// "inf" and "-inf" stand for what JSON cannot carry). Fields that this program does not know are
// ignored. `version` is the version of the kind's form: from 1.0.0 on, a change of it is also a
// change of kFormat.
struct EncodedFact {
  std::string_view kind;
  int version = 1;
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;
  std::string payload;
};

EncodedFact Encode(const Fact& fact);

// A row as it was read.
struct StoredFact {
  std::string_view kind;
  int64_t version = 1;
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;
  std::string_view payload;
};

// kCorrupt for an unknown kind, a version newer than this program's, and a payload that lacks a
// field or has one of another type.
Result<Fact> Decode(const StoredFact& stored);

}  // namespace attune::server
