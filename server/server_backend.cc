#include "server/server_backend.h"

#include <utility>

#include "base/result.h"
#include "core/log/stored_path.h"
#include "server/masked_log.h"

namespace attune::server {
namespace {

// A file that cannot be read now is not a fault of the request.
Error Unavailable(const Error& error) { return {ErrorCode::kUnavailable, error.message}; }

}  // namespace

std::vector<Backend::ExecutorStatus> ServerBackend::Executors() {
  std::vector<ExecutorStatus> all;
  conductor_.Query([&](const Brain& brain) {
    for (const auto& [name, executor] : brain.state().executors) {
      const auto pulse = executors_.PulseOf(name);
      std::optional<double> seconds;
      if (pulse) seconds = static_cast<double>(pulse->silent_us) * 1e-6;
      ExecutorStatus& status = all.emplace_back(StatusOf(brain.state(), executor, seconds));
      if (const auto use = executors_.StorageUseOf(name)) status.storage_problem = use->problem;
      if (!pulse) continue;
      status.disk_free_bytes = pulse->disk_free_bytes;
      status.memory_free_bytes = pulse->memory_free_bytes;
    }
  });
  return all;
}

Result<Backend::LogSlice> ServerBackend::ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                                                 uint32_t limit_bytes) {
  const auto row = reader_.Attempt(attempt);
  if (!row.ok()) return row.error();
  const std::vector<RankSlot>& ranks = row->ranks;
  if (ranks.empty())
    return Error{ErrorCode::kNotFound, "attempt " + ToString(attempt) +
                                           " runs outside Attune, so the server has no log of it"};
  if (rank < 0 || rank >= std::ssize(ranks))
    return Error{ErrorCode::kNotFound, "attempt " + ToString(attempt) + " has no rank " +
                                           std::to_string(rank) + ": its ranks are 0 to " +
                                           std::to_string(std::ssize(ranks) - 1)};
  const auto mask = secrets_.Mask();
  if (!mask.ok()) return Unavailable(mask.error());
  return ReadMasked({offset, limit_bytes}, **mask, [&](const LogRange& range) -> Result<LogSlice> {
    auto slice = executors_.ReadLog(ranks[static_cast<size_t>(rank)].executor, attempt, rank,
                                    range.offset, range.limit_bytes);
    if (!slice.ok()) return slice.error();
    return LogSlice{std::move(slice->data), slice->offset, slice->file_bytes, slice->gap_begin,
                    slice->gap_end};
  });
}

std::string ServerBackend::UrlOfCopy(const CheckpointId& checkpoint, const std::string& digest,
                                     const std::string& address) {
  std::string path;
  conductor_.Query([&](const Brain& brain) {
    path = StoredPath(IdentityOf(brain.state(), checkpoint.trial.sweep), checkpoint, digest);
  });
  return UrlOf(address, path);
}

Status ServerBackend::CheckStore(const std::string& address) {
  if (const auto store = stores_.Open(address); !store.ok())
    return Invalid("storage: " + store.error().message);
  std::vector<std::string> names;
  conductor_.Query([&](const Brain& brain) {
    for (const auto& [name, executor] : brain.state().executors) names.push_back(name);
  });
  std::string lacking;
  for (const std::string& name : names) {
    const auto use = executors_.StorageUseOf(name);
    if (use && !use->stores) lacking += (lacking.empty() ? "" : ", ") + name;
  }
  if (lacking.empty()) return {};
  return Invalid("storage: object storage needs the program rclone, which is missing on " +
                 lacking +
                 "; install it there with `pip install 'attune-hpo[storage]'` or `apt-get install "
                 "rclone`, and restart the executor");
}

Result<std::vector<std::string>> ServerBackend::UndefinedSecrets(
    const std::vector<std::string>& names) {
  std::vector<std::string> undefined;
  for (const std::string& name : names) {
    const auto value = secrets_.Find(name);
    if (!value.ok()) return Unavailable(value.error());
    if (!*value) undefined.push_back(name);
  }
  return undefined;
}

}  // namespace attune::server
