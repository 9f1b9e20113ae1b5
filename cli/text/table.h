#pragma once

#include <string>
#include <vector>

#include "cli/text/style.h"

namespace attune::cli {

struct Column {
  std::string title;
  bool right = false;  // right-aligned, for numbers
};

struct Cell {
  std::string text;
  Colour colour = Colour::kPlain;

  Cell(std::string t) : text(std::move(t)) {}  // NOLINT(runtime/explicit)
  Cell(const char* t) : text(t) {}             // NOLINT(runtime/explicit)
  Cell(std::string t, Colour c) : text(std::move(t)), colour(c) {}
};

// A table with titles. Columns are as wide as their widest cell. On a narrower terminal, the last
// column shrinks, at most to the width of its title.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns.
  void Add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }

  // One string per line, titles first. `width` 0: no limit.
  std::vector<std::string> Lines(const Style& style, int width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace attune::cli
