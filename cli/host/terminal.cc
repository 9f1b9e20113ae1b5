#include "cli/host/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cli/exit_code.h"
#include "system/system_error.h"

namespace attune::cli {
namespace {

constexpr size_t kInputBytesMax = 64 * 1024;  // larger than any secret

// Turns the echo of the terminal at standard input off until destroyed.
class HiddenTyping {
 public:
  HiddenTyping() {
    hidden_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    termios without_echo = before_;
    without_echo.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden_ = hidden_ && tcsetattr(STDIN_FILENO, TCSAFLUSH, &without_echo) == 0;
  }
  ~HiddenTyping() { Restore(); }
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;

  bool hidden() const { return hidden_; }
  void Restore() const {
    if (hidden_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }

 private:
  termios before_{};
  bool hidden_ = false;
};

// Reads standard input: one line if `line`, otherwise to its end.
Result<std::string> ReadInput(bool line) {
  std::string text;
  std::array<char, 4096> part;
  while (text.size() < kInputBytesMax && !(line && text.ends_with('\n'))) {
    const ssize_t count = read(STDIN_FILENO, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("cannot read standard input", errno);
    if (count == 0) break;
    text.append(part.data(), static_cast<size_t>(count));
  }
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

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

Result<std::string> ReadSecret(const std::string& prompt, Interrupt& interrupt) {
  if (isatty(STDIN_FILENO) == 0) return ReadInput(/*line=*/false);
  const HiddenTyping typing;
  if (!typing.hidden())
    return Error{ErrorCode::kInvalid,
                 "the terminal would show the secret; pass it through standard input"};
  // Otherwise Ctrl-C would end the process and leave the terminal without echo.
  const Interrupt::Subscription restore(interrupt, [&typing] {
    typing.Restore();
    _exit(static_cast<int>(ExitCode::kInterrupted));
  });
  Output(std::cerr, {}).Write(prompt);
  Result<std::string> value = ReadInput(/*line=*/true);
  Output(std::cerr, {}).Write("\n");
  return value;
}

}  // namespace attune::cli
