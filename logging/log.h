#pragma once

// Log messages of the service. Use it wherever a server or an executor has something to tell its
// operator:
//
//   logging::Warn("cannot delete {}: {}", folder.string(), error.message());
//
// spdlog writes them. Only log.cc and the place that configures the log include spdlog: its headers
// and the formatting code behind them would cost every other library more than a second to compile.

#include <fmt/core.h>

#include <utility>

namespace attune::logging {

enum class Level { kDebug, kInfo, kWarn, kError, kCritical };

// Formats and writes one message, unless the log leaves out messages of this level. Any thread.
void Write(Level level, fmt::string_view format, fmt::format_args arguments);

// The format string is checked at compile time (https://fmt.dev/9.1.0/syntax.html).
template <class... Arguments>
void Log(Level level, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(level, format, fmt::make_format_args(arguments...));
}

template <class... Arguments>
void Debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kDebug, format, fmt::make_format_args(arguments...));
}

template <class... Arguments>
void Info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kInfo, format, fmt::make_format_args(arguments...));
}

template <class... Arguments>
void Warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kWarn, format, fmt::make_format_args(arguments...));
}

template <class... Arguments>
void Error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kError, format, fmt::make_format_args(arguments...));
}

template <class... Arguments>
void Critical(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kCritical, format, fmt::make_format_args(arguments...));
}

// Flushes and closes the log. Call it before the process ends abruptly; later messages are lost.
void Shutdown();

}  // namespace attune::logging
