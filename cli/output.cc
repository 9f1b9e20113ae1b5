#include "cli/output.h"

#include <algorithm>

#include "cli/text/width.h"

namespace attune::cli {

void Output::Print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  stream_ << Erase() << text << '\n' << BlockText() << std::flush;
}

void Output::PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) Print(line);
}

void Output::Write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  stream_ << bytes << std::flush;
}

void Output::Draw(std::vector<std::string> lines) {
  const std::lock_guard lock(mutex_);
  const std::string erase = Erase();
  drawn_ = std::move(lines);
  stream_ << erase << BlockText() << std::flush;
}

void Output::Leave() {
  const std::lock_guard lock(mutex_);
  drawn_.clear();
}

void Output::Remove() {
  const std::lock_guard lock(mutex_);
  stream_ << Erase() << std::flush;
  drawn_.clear();
}

std::string Output::Erase() const {
  if (drawn_.empty()) return "";
  // A terminal that became narrower has wrapped the old lines into several rows.
  const int columns = std::max(1, size().columns);
  int rows = 0;
  for (const std::string& line : drawn_) {
    rows += std::max(1, (DisplayWidth(line) + columns - 1) / columns);
  }
  return "\r\x1b[" + std::to_string(rows) + "A\x1b[J";
}

std::string Output::BlockText() const {
  std::string text;
  for (const std::string& line : drawn_) text += line + '\n';
  return text;
}

}  // namespace attune::cli
