#include "executor/agent/fetchers.h"

#include <utility>

#include "code/tree.h"
#include "executor/gang/preparation.h"
#include "executor/transfer/data_copies.h"
#include "executor/transfer/piece_copies.h"

namespace attune::agent {

Fetchers::Fetchers(const std::filesystem::path& folder, const CopyLimits& limits,
                   const Access& access, CommandProcesses& processes, Results results)
    : store_damaged_(std::move(results.store_damaged)),
      checkpoint_source_(access),
      code_source_(access),
      checkpoints_(kCheckpoints.copies, folder / "copies", limits, std::move(results.checkpoint)),
      code_(kCode.copies, CodeFolder(folder), limits, std::move(results.code)),
      data_(kData, folder / "data", limits, std::move(results.data)),
      environments_({.folder = folder / "environments",
                     .images = folder / "images",
                     .bytes_max = limits.bytes_max,
                     .disk_free_bytes_min = limits.disk_free_bytes_min},
                    processes, std::move(results.environment)) {}

void Fetchers::FetchCheckpoint(const gang::AttemptId& attempt, const gang::RemoteFiles& files,
                               const std::string& digest) {
  checkpoints_.Fetch(
      attempt,
      WantedFromPieces(kCheckpoints, checkpoint_source_.direct, files, digest, kRetryTimeout,
                       [this, name = files.name, digest] { store_damaged_(name, digest); }));
}

void Fetchers::FetchCode(const gang::GangSpec& spec) {
  const gang::RemoteFiles& files = spec.code->files;
  WantedCopy wanted = WantedFromPieces(kCode, code_source_.direct, files, files.code);
  wanted.prepare = [spec](const std::filesystem::path& copy) {
    const Status made = gang::MakeFolders(spec);
    return made.ok() ? code::MakeWorkFolder(copy, spec.work_dir, spec.program.working_directory,
                                            spec.code->writable)
                     : made;
  };
  code_.Fetch(spec.attempt, std::move(wanted));
}

void Fetchers::FetchData(const gang::GangSpec& spec) {
  for (const gang::DataFile& file : spec.data) data_.Fetch(spec.attempt, WantedData(spec, file));
}

void Fetchers::BuildEnvironment(const gang::GangSpec& spec) { environments_.Build(spec); }

void Fetchers::Release(const gang::AttemptId& attempt) {
  checkpoints_.Release(attempt);
  code_.Release(attempt);
  data_.Release(attempt);
  environments_.Release(attempt);
}

void Fetchers::EvictUnused() {
  checkpoints_.EvictUnused();
  code_.EvictUnused();
  data_.EvictUnused();
  environments_.EvictUnused();
}

}  // namespace attune::agent
