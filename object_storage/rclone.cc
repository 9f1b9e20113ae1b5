#include "object_storage/rclone.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/message_limits.h"
#include "base/parse_number.h"
#include "base/result.h"
#include "base/utf8.h"
#include "system/command.h"
#include "system/own_program.h"
#include "system/spawn.h"

namespace attune::object_storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOverride = "ATTUNE_RCLONE=";
constexpr std::chrono::seconds kVersionTimeout{30};  // a slow file system or a busy host
constexpr size_t kVersionBytesMax = 1 << 20;

Error WithInstallation(ErrorCode code, const std::string& what) {
  return {code, what +
                    "; install rclone 1.60 or later with `pip install 'attune-hpo[storage]'` or "
                    "`apt-get install rclone`, or set ATTUNE_RCLONE to its path"};
}

std::string ValueOf(const Environment& environment, std::string_view start) {
  const auto found = std::ranges::find_if(
      environment, [&](const std::string& variable) { return variable.starts_with(start); });
  return found == environment.end() ? "" : found->substr(start.size());
}

Result<fs::path> FindFile(const Environment& environment) {
  if (const std::string chosen = ValueOf(environment, kOverride); !chosen.empty()) {
    // An absolute path, so that it is not a name in PATH.
    const Result<fs::path> file = FindProgram(fs::absolute(chosen), {}, "");
    if (file.ok()) return file;
    return WithInstallation(file.error().code, "ATTUNE_RCLONE: " + file.error().message);
  }
  const std::string folder = OwnProgram().parent_path();
  const Result<fs::path> file =
      FindProgram("rclone", {}, ValueOf(environment, "PATH=") + ':' + folder);
  if (file.ok()) return file;
  return WithInstallation(file.error().code,
                          "object storage needs the program rclone, which is not in PATH");
}

// Parses the first line of `rclone version`, such as "rclone v1.60.1-DEV".
std::optional<std::string> ParseVersion(std::string_view output) {
  constexpr std::string_view kStart = "rclone v";
  if (!output.starts_with(kStart)) return std::nullopt;
  output.remove_prefix(kStart.size());
  return std::string(output.substr(0, output.find_first_not_of("0123456789.")));
}

bool IsNewEnough(std::string_view version) {
  const size_t point = version.find('.');
  const auto major = ParseNumber<int>(version.substr(0, point));
  const std::string_view rest = point == version.npos ? "" : version.substr(point + 1);
  const auto minor = ParseNumber<int>(rest.substr(0, rest.find('.')));
  return major && minor && std::pair(*major, *minor) >= std::pair(kRcloneMajorMin, kRcloneMinorMin);
}

}  // namespace

bool HasRclone(const Environment& environment) { return FindFile(environment).ok(); }

Result<Rclone> FindRclone(const Environment& environment) {
  const Result<fs::path> program = FindFile(environment);
  if (!program.ok()) return program.error();
  SystemCommands commands({.timeout = kVersionTimeout,
                           .environment = environment,
                           .output_bytes_max = kVersionBytesMax});
  const Result<CommandResult> printed = commands.Run({*program, "version"});
  if (!printed.ok())
    return WithInstallation(ErrorCode::kInvalid,
                            "cannot run " + program->string() + ": " + printed.error().message);
  const std::optional<std::string> version = ParseVersion(printed->out);
  if (printed->exit_code != 0 || !version)
    return WithInstallation(
        ErrorCode::kInvalid,
        program->string() + " is not a working rclone: `rclone version` ended with exit code " +
            std::to_string(printed->exit_code) + " and printed " +
            CutEnd(ValidUtf8(printed->out + printed->err), kMatchedLineBytesMax));
  if (!IsNewEnough(*version))
    return WithInstallation(ErrorCode::kInvalid,
                            program->string() + " is rclone " + *version + ", which is too old");
  return Rclone{*program, *version};
}

}  // namespace attune::object_storage
