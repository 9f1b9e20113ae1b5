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

// A stream for people or programs, which may be a terminal. Thread-safe.
//
// On a live terminal a block of lines can be drawn and redrawn in place, without the alternate
// screen, so that the scrollback survives; printed lines appear above the block.
class Output {
 public:
  struct Traits {
    bool live = false;  // a terminal that obeys cursor movements
    bool colours = false;
    std::function<TerminalSize()> size;  // absent: no limit to a line
  };

  Output(std::ostream& stream, Traits traits) : stream_(stream), traits_(std::move(traits)) {}

  void Print(std::string_view text);  // and a line's end
  void PrintLines(const std::vector<std::string>& lines);
  void Write(std::string_view bytes);  // as they are

  // REQUIRES: live(). Lines must not be wider than the terminal.
  void Draw(std::vector<std::string> lines);
  void Leave();   // what is drawn stays, and the next print comes below it
  void Remove();  // what is drawn vanishes

  bool live() const { return traits_.live; }
  Style style() const { return Style(traits_.colours); }
  void DisableColours() { traits_.colours = false; }
  // Columns of the terminal now; 0 when it is none.
  int width() const { return traits_.size ? traits_.size().columns : 0; }
  TerminalSize size() const { return traits_.size ? traits_.size() : TerminalSize{}; }

 private:
  std::string Erase() const;
  std::string Drawn() const;

  std::ostream& stream_;
  Traits traits_;
  std::mutex mutex_;
  std::vector<std::string> drawn_;
};

}  // namespace attune::cli
