#include "system/own_program.h"

#include <errno.h>

#include <system_error>

namespace attune {
namespace {

constexpr char kSelf[] = "/proc/self/exe";
// packaging/attune.sh starts the program with this name
constexpr char kLoader[] = "attune-loader";

}  // namespace

std::filesystem::path OwnProgram() {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::read_symlink(kSelf, error);
  // The kernel appends " (deleted)" to the name if the file was replaced.
  if (file.filename().string().starts_with(kLoader)) return program_invocation_name;
  return std::filesystem::exists(file, error) ? file : kSelf;
}

}  // namespace attune
