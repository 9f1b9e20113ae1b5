#include "server/http/routes/sweeps/sweep_file.h"

#include <string>

namespace attune::server {

Status CheckDirectory(const Request& request) {
  const std::string directory = request.Query("directory").value_or("");
  if (directory.empty() || directory.front() == '/') return {};
  return Error{ErrorCode::kInvalid, "directory: " + directory +
                                        " is a relative path; give the absolute one of the folder "
                                        "that the file's paths are relative to"};
}

sweepfile::Parsed ParseSweepFile(const Request& request, const Algorithms& algorithms) {
  sweepfile::ParseOptions options{
      .directory_from = "the query `directory`", .algorithms = &algorithms, .program_fault = {}};
  if (const auto file = request.Query("file"); file && !file->empty()) options.file = *file;
  options.directory = request.Query("directory").value_or("");
  if (const auto digest = request.Query("code_digest"); digest && !digest->empty())
    options.snapshot =
        sweepfile::Snapshot{.digest = *digest,
                            .commit = request.Query("code_commit").value_or(""),
                            .dirty = request.Query("code_dirty").value_or("") == "true"};
  return sweepfile::ParseSweep(request.body, options);
}

}  // namespace attune::server
