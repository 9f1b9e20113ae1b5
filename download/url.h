#pragma once

#include <string>
#include <string_view>

namespace attune::download {

// The URL for messages: without the parts that may be secret, such as a password or a signature.
std::string WithoutSecrets(std::string_view url);

// A name for the file at the URL: the last segment of its path, in at most kFileNameBytesMax bytes.
// It has letters, digits, `.`, `_`, `-` and `+`; each other character becomes `_`. It does not
// begin with a point. "data": the path has no such segment.
std::string FileName(std::string_view url);

inline constexpr size_t kFileNameBytesMax = 200;  // leaves room for endings, such as .partial

}  // namespace attune::download
