#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/base/ids.h"
#include "core/space/value.h"
#include "sweepfile/document.h"

namespace attune::sweepfile {

// Reads scalars as an expected type. Plain scalars follow the core schema of YAML 1.2 (§10.3.2):
// 1e-3 is a number, no and on are text, true and false are booleans. The error says what was found,
// what was expected, and what to write.

// The value with the type that the text has: boolean, integer, real, or text. Quoted scalars are
// text. REQUIRES: the node is not null.
Result<Value> ReadValue(const Node& node);

Result<std::string> ReadText(const Node& node);  // any scalar, as it was written
Result<bool> ReadBoolean(const Node& node);
Result<int64_t> ReadInteger(const Node& node);   // also 1e3 and 8.0
Result<double> ReadReal(const Node& node);       // finite; integers too
Result<Value> ReadNumber(const Node& node);      // int64_t or a finite double
Result<Seconds> ReadDuration(const Node& node);  // 500ms, 10s, 5m, 2h, 1d
Result<int64_t> ReadSize(const Node& node);      // 512MiB, 16GiB, 2GB, 4096B

// Such a result as one of any type.
template <class T>
Result<Value> AsValue(const Result<T>& result) {
  if (!result.ok()) return result.error();
  return Value(*result);
}

// Texts that ReadDuration and ReadSize read back exactly.
std::string FormatDuration(Seconds duration);
std::string FormatSize(int64_t bytes);

// The node for messages such as "expected …, found …": "a map", "the text "abc"", "the integer 5".
std::string Describe(const Node& node);

// Whether a plain scalar with this text is a text, and not a number, a boolean or null.
bool LooksLikeText(std::string_view plain);

}  // namespace attune::sweepfile
