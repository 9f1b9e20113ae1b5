#pragma once

#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/text/style.h"

namespace attune::cli {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// An output stream, which may be a terminal. Thread-safe.
//
// On a live terminal a block of lines can be drawn and redrawn in place, without the alternate
// screen, so that the scrollback survives; printed lines appear above the block.
class Output {
 public:
  struct Traits {
    bool live = false;  // a terminal that supports cursor movements
    bool colours = false;
    std::function<TerminalSize()> size;  // absent: lines have no limit
  };

  Output(std::ostream& stream, Traits traits) : stream_(stream), traits_(std::move(traits)) {}

  void Print(std::string_view text);  // adds a line end
  void PrintLines(const std::vector<std::string>& lines);
  void Write(std::string_view bytes);  // unchanged

  // REQUIRES: live(). Lines must not be wider than the terminal.
  void Draw(std::vector<std::string> lines);
  void Leave();   // keeps the block; later text is printed below it
  void Remove();  // erases the block

  bool live() const { return traits_.live; }
  Style style() const { return Style(traits_.colours); }
  void DisableColours() { traits_.colours = false; }
  // Current columns of the terminal; 0 if the stream is not a terminal.
  int width() const { return traits_.size ? traits_.size().columns : 0; }
  TerminalSize size() const { return traits_.size ? traits_.size() : TerminalSize{}; }

 private:
  std::string Erase() const;
  std::string BlockText() const;

  std::ostream& stream_;
  Traits traits_;
  std::mutex mutex_;
  std::vector<std::string> drawn_;
};

}  // namespace attune::cli
