#include "executor/gang/log_match.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "executor/gang/folders.h"
#include "executor/logs/escape_codes.h"

namespace attune::gang {
namespace {

// Reads the end of a log, beginning with a complete line.
std::string ReadLogEnd(const std::filesystem::path& log) {
  std::string text;
  bool whole = true;  // `text` begins with a complete line
  for (auto offset = -static_cast<int64_t>(kLogSearchedBytesMax);
       text.size() < kLogSearchedBytesMax;) {
    Result<LogPiece> piece = ReadLog(log, offset, kLogReadBytesMax);
    if (!piece.ok() || piece.value().data.empty()) break;
    LogPiece& read = piece.value();
    offset = static_cast<int64_t>(read.offset + read.data.size());
    if (text.empty()) whole = read.offset == 0;
    text += read.data;
  }
  if (!whole) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

class Search {
 public:
  explicit Search(const std::vector<std::string>& patterns) : patterns_(patterns) {
    RE2::Options options;
    options.set_log_errors(false);
    for (const std::string& pattern : patterns)
      compiled_.push_back(std::make_unique<RE2>(pattern, options));
  }

  // Searches only for patterns that come before the best match so far.
  void SearchText(std::string_view text) {
    while (!text.empty() && found_ > 0) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string line = WithoutEscapeCodes(text.substr(0, end));
      for (size_t i = 0; i < found_; ++i) {
        if (!compiled_[i]->ok() || !RE2::PartialMatch(line, *compiled_[i])) continue;
        found_ = i;
        line_ = line.substr(0, kMatchedLineBytesMax);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  LogMatch Take() && {
    if (found_ == patterns_.size()) return {};
    return {patterns_[found_], std::move(line_)};
  }

 private:
  const std::vector<std::string>& patterns_;
  std::vector<std::unique_ptr<RE2>> compiled_;
  size_t found_ = patterns_.size();
  std::string line_;
};

}  // namespace

LogMatch FindLogMatch(const std::vector<std::string>& patterns, const std::string& message,
                      const std::vector<std::filesystem::path>& logs) {
  if (patterns.empty()) return {};
  Search search(patterns);
  search.SearchText(message);
  for (const std::filesystem::path& log : logs) search.SearchText(ReadLogEnd(log));
  return std::move(search).Take();
}

}  // namespace attune::gang
