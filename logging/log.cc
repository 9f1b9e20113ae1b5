#include "logging/log.h"

#include <spdlog/spdlog.h>

namespace attune::logging {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::critical;
}

}  // namespace

void Write(Level level, fmt::string_view format, fmt::format_args arguments) {
  spdlog::logger* const log = spdlog::default_logger_raw();
  if (log == nullptr || !log->should_log(ToSpdlog(level))) return;
  const std::string message = fmt::vformat(format, arguments);
  log->log(ToSpdlog(level), spdlog::string_view_t(message));
}

void Shutdown() { spdlog::shutdown(); }

}  // namespace attune::logging
