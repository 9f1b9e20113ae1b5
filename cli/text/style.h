#pragma once

#include <string>
#include <string_view>

namespace attune::cli {

enum class Colour { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kCyan };

// Adds colours to text if they are enabled.
class Style {
 public:
  explicit Style(bool colours = false) : colours_(colours) {}
  std::string Paint(Colour colour, std::string_view text) const;

 private:
  bool colours_;
};

// The colour of a trial's, a sweep's or an executor's state, the same in every table.
Colour ColourOfState(std::string_view state);

}  // namespace attune::cli
