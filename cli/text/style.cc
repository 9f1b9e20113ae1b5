#include "cli/text/style.h"

namespace attune::cli {
namespace {

std::string_view Code(Colour colour) {
  switch (colour) {
    case Colour::kBold:
      return "1";
    case Colour::kDim:
      return "2";
    case Colour::kRed:
      return "31";
    case Colour::kGreen:
      return "32";
    case Colour::kYellow:
      return "33";
    case Colour::kBlue:
      return "34";
    case Colour::kCyan:
      return "36";
    case Colour::kPlain:
      break;
  }
  return "";
}

}  // namespace

std::string Style::Paint(Colour colour, std::string_view text) const {
  if (!colours_ || colour == Colour::kPlain || text.empty()) return std::string(text);
  std::string painted = "\x1b[";
  painted += Code(colour);
  painted += 'm';
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

Colour ColourOfState(std::string_view state) {
  if (state == "running" || state == "online") return Colour::kBlue;
  if (state == "completed") return Colour::kGreen;
  if (state == "failed" || state == "lost") return Colour::kRed;
  if (state == "unhealthy") return Colour::kRed;
  if (state == "paused" || state == "draining" || state == "drained" || state == "quarantined")
    return Colour::kYellow;
  if (state == "stopped" || state == "killed") return Colour::kDim;
  return Colour::kPlain;
}

}  // namespace attune::cli
