#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/log/event.h"

namespace attune::server {

// The form of a fact in the log: the columns of a row, and a payload of JSON with the other fields.
// The payload is an object, or an array for measured values (measured_form.h).
//
// A kind is the name of the fact in snake_case. Doubles are restored exactly; the strings "nan",
// "inf" and "-inf" represent values that JSON cannot express. Unknown fields are ignored. `version`
// is the version of the kind's form. From 1.0.0 on, changing it also requires a change of kFormat.
struct EncodedFact {
  std::string_view kind;
  int version = 1;
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;
  std::string payload;
};

EncodedFact Encode(const Fact& fact);

// A row that was read.
struct StoredFact {
  std::string_view kind;
  int64_t version = 1;
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;
  std::string_view payload;
};

// Errors: kCorrupt for an unknown kind, for a version newer than this program's, and for a payload
// that lacks a field or has a field of another type.
Result<Fact> Decode(const StoredFact& stored);

}  // namespace attune::server
