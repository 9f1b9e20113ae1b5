#include "server/checkpoint_source.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "core/log/stored_path.h"
#include "logging/log.h"
#include "server/store/format_time.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

// The executors that may hold a checkpoint, as the state knows them.
struct Holders {
  std::string folder;        // Hello.folder of the executor that saved it; empty: unknown
  std::optional<Time> lost;  // since when that executor is lost
  bool known = false;        // whether the state knows that executor
  // executors that read that folder; the first one saved the checkpoint
  std::vector<std::string> names;
};

Holders HoldersOf(const State& state, const std::string& saver) {
  Holders holders{.names = {saver}};
  const auto found = state.executors.find(saver);
  if (found == state.executors.end()) return holders;
  holders.known = true;
  holders.folder = found->second.folder;
  if (found->second.lost) holders.lost = ShownTime(state, found->second.lost_at);
  if (holders.folder.empty()) return holders;
  for (const auto& [name, executor] : state.executors) {
    if (name != saver && executor.folder == holders.folder) holders.names.push_back(name);
  }
  return holders;
}

// The executor's data folder, if this server sees the same folder under the same path.
std::optional<fs::path> FindMountedFolder(const std::string& folder) {
  const size_t colon = folder.find(':');
  if (colon == folder.npos) return std::nullopt;
  const fs::path path = folder.substr(colon + 1);
  std::ifstream file(path / "folder-id");
  std::string word;
  file >> word;
  if (word.empty() || word != folder.substr(0, colon)) return std::nullopt;
  return path;
}

// The layout is that of executor/gang/folders.h.
fs::path CheckpointsOf(const fs::path& data, const TrialId& trial) {
  return data / "sweeps" / ToString(trial.sweep) / "trials" / std::to_string(trial.number.value) /
         "checkpoints";
}

Result<Backend::CheckpointPiece> ReadFrom(const fs::path& folder, const std::string& file,
                                          uint64_t offset, uint32_t limit_bytes) {
  Result<checkpoints::Piece> piece = checkpoints::ReadPiece(folder, file, offset, limit_bytes);
  if (!piece.ok()) return piece.error();
  return Backend::CheckpointPiece{std::move(piece->data), piece->file_bytes};
}

// `store`: the error of the object store that has a copy.
Error UnreachableError(const CheckpointId& id, const KeptRow& row, const Holders& holders,
                       const Status& store) {
  std::string text = "checkpoint " + ToString(id) + " is on executor " + row.executor + ", in " +
                     row.checkpoint.path + ", and that executor ";
  if (!holders.known) {
    text += "is no longer known; copy the folder by hand";
  } else if (holders.lost) {
    text += "has been lost since " + FormatTime(*holders.lost) +
            "; start it again on the same data folder, or copy the folder by hand";
  } else {
    text += "is not connected; start it again on the same data folder, then try again";
  }
  if (!store.ok()) text += "; its copy cannot be read: " + store.error().message;
  return {ErrorCode::kUnavailable, std::move(text)};
}

}  // namespace

// Reads from the object store. Records that it has no copy if that is so.
Result<Backend::CheckpointPiece> CheckpointSource::ReadStored(
    const CheckpointId& id, const KeptRow& row, const std::string& path, const std::string& file,
    uint64_t offset, uint32_t limit_bytes) {
  auto piece = copies_.Read({.address = row.checkpoint.stored,
                             .path = path,
                             .file = file,
                             .offset = offset,
                             .limit_bytes = limit_bytes});
  if (piece.ok()) return Backend::CheckpointPiece{std::move(piece->data), piece->file_bytes};
  if (piece.error().code == ErrorCode::kConflict) {
    logging::Warn("{}; the server no longer expects it there", piece.error().message);
    conductor_.Submit(RecordStored{id, row.checkpoint.digest, ""}, {});
  }
  return piece.error();
}

Result<Backend::CheckpointPiece> CheckpointSource::Read(const CheckpointId& id,
                                                        const std::string& file, uint64_t offset,
                                                        uint32_t limit_bytes) {
  if (const std::string fault = checkpoints::NameFault(file); !fault.empty())
    return Error{ErrorCode::kInvalid, "file: \"" + file + "\" " + fault};
  const auto row = reader_.Checkpoint(id);
  if (!row.ok()) return row.error();
  if (row->checkpoint.dropped)
    return Error{ErrorCode::kConflict, "checkpoint " + ToString(id) + " was dropped at " +
                                           *row->checkpoint.dropped + ": " +
                                           row->checkpoint.reason};
  const std::string name = fs::path(row->checkpoint.path).filename();
  if (row->executor.empty() || name.empty() || !checkpoints::NameFault(name).empty())
    return Error{ErrorCode::kUnavailable,
                 "checkpoint " + ToString(id) +
                     " was reported by an external program, so the server cannot read it; read " +
                     row->checkpoint.path + " directly"};

  Holders holders;
  std::string path;  // in an object store
  conductor_.Query([&](const Brain& brain) {
    holders = HoldersOf(brain.state(), row->executor);
    path = StoredPath(IdentityOf(brain.state(), id.trial.sweep), id, row->checkpoint.digest);
  });
  const bool stored = storage_ != nullptr && storage_->Has(id, row->checkpoint.digest);
  if (const auto data = FindMountedFolder(holders.folder)) {
    auto piece = ReadFrom(CheckpointsOf(*data, id.trial) / name, file, offset, limit_bytes);
    if (piece.ok() || (!stored && row->checkpoint.stored.empty())) return piece;
  }
  if (stored) return ReadFrom(storage_->FolderOf(id), file, offset, limit_bytes);
  for (const std::string& executor : holders.names) {
    if (!executors_.Connected(executor)) continue;
    auto piece = executors_.ReadCheckpoint(executor, {.trial = id.trial,
                                                      .folder = name,
                                                      .file = file,
                                                      .offset = offset,
                                                      .limit_bytes = limit_bytes});
    if (piece.ok())
      return Backend::CheckpointPiece{std::move(*piece->mutable_data()), piece->file_bytes()};
    if (executors_.Connected(executor) && row->checkpoint.stored.empty()) return piece.error();
  }
  Status store;
  if (!row->checkpoint.stored.empty()) {
    auto piece = ReadStored(id, *row, path, file, offset, limit_bytes);
    if (piece.ok() || piece.error().code == ErrorCode::kNotFound) return piece;
    store = piece.error();
  }
  return UnreachableError(id, *row, holders, store);
}

}  // namespace attune::server
