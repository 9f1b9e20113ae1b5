#include "cli/host/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace attune::cli {

Output::Traits TraitsOf(int descriptor) {
  if (isatty(descriptor) == 0) return {};
  const char* const term = std::getenv("TERM");
  const char* const no_color = std::getenv("NO_COLOR");
  const bool capable = term != nullptr && std::string_view(term) != "dumb";
  return {.live = capable,
          .colours = capable && (no_color == nullptr || *no_color == '\0'),
          .size = [descriptor]() -> TerminalSize {
            winsize size{};
            if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
            return {.columns = size.ws_col, .rows = size.ws_row};
          }};
}

}  // namespace attune::cli
