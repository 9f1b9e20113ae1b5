#pragma once

#include <string>
#include <string_view>

namespace attune {

// The parts of a failure's message that many attempts have in common: two messages with the same
// pattern have probably the same cause.
//
// - A number becomes N, also with a sign, a fraction, an exponent or several dots. Numbers after
//   `exit code`, `status` and `signal` stay, and so do digits of a word such as float32.
// - A hexadecimal number or digest becomes N.
// - A path keeps only its last part: /data/s1/8/x.csv becomes …/x.csv.
// - Several spaces become one.
std::string PatternOf(std::string_view message);

}  // namespace attune
