#include "simulator/csv.h"

#include <algorithm>

namespace attune::simulate {

bool CsvReader::Next(std::vector<std::string>& cells) {
  cells.clear();
  while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == '\r')) {
    if (rest_.front() == '\n') ++next_line_;
    rest_.remove_prefix(1);
  }
  if (rest_.empty()) return false;
  line_ = next_line_;
  cells.push_back(Cell());
  while (!rest_.empty() && rest_.front() == ',') {
    rest_.remove_prefix(1);
    cells.push_back(Cell());
  }
  return true;
}

// Up to the comma or the line's end that follows it.
std::string CsvReader::Cell() {
  std::string cell;
  bool quoted = false;
  size_t at = 0;
  for (; at < rest_.size(); ++at) {
    const char c = rest_[at];
    if (c == '"' && quoted && at + 1 < rest_.size() && rest_[at + 1] == '"') {
      cell += rest_[++at];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '\n' || c == '\r')) {
      break;
    } else {
      cell += c;
    }
  }
  next_line_ += static_cast<int>(std::ranges::count(rest_.substr(0, at), '\n'));
  rest_.remove_prefix(at);
  return cell;
}

}  // namespace attune::simulate
