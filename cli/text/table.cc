#include "cli/text/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr int kGap = 2;

}  // namespace

void Table::Add(std::vector<Cell> row) {
  ATTUNE_CHECK(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = Clean(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<std::string> Table::Lines(const Style& style, int width) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i].text));
    widths.push_back(widest);
  }
  if (width > 0) {
    int others = 0;
    for (size_t i = 0; i + 1 < widths.size(); ++i) others += widths[i] + kGap;
    widths.back() =
        std::min(widths.back(), std::max(width - others, DisplayWidth(columns_.back().title)));
  }

  const auto line = [&](auto&& cell) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell& at = cell(i);
      const std::string clipped = Clip(at.text, widths[i]);
      const int spaces = widths[i] - DisplayWidth(clipped);
      if (columns_[i].right) text.append(spaces, ' ');
      text += style.Paint(at.colour, clipped);
      if (i + 1 == columns_.size()) break;
      text.append((columns_[i].right ? 0 : spaces) + kGap, ' ');
    }
    return width > 0 ? Clip(text, width) : text;
  };

  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Colour::kDim);
  std::vector<std::string> lines = {line([&](size_t i) -> const Cell& { return titles[i]; })};
  for (const auto& row : rows_) {
    lines.push_back(line([&](size_t i) -> const Cell& { return row[i]; }));
  }
  return lines;
}

}  // namespace attune::cli
