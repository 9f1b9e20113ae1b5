#include "server/storage/archive.h"

#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "checkpoints/manifest.h"
#include "checkpoints/piece.h"
#include "code/tree.h"
#include "server/store/json.h"
#include "server/store/offline/export.h"
#include "sweepfile/sweepfile.h"
#include "system/command.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kVersionDigits = 16;
constexpr uint64_t kDiskFreeBytesMin = uint64_t{1} << 30;
constexpr std::chrono::minutes kTarTimeout{10};

Json ToJson(const BestTrial& best) {
  Json values = Json::array();
  for (const double value : best.values) values.push_back(sweepfile::RealToJson(value));
  return {{"trial", best.trial.value},
          {"step", best.step.value},
          {"values", std::move(values)},
          {"config", sweepfile::ToJson(best.config)},
          {"metrics", sweepfile::ToJson(best.metrics)}};
}

// The sweep without `env` of its program. The file as it was sent may repeat hidden values.
Json ToJson(const SweepRow& row, std::string file) {
  SweepSpec spec = row.spec;
  if (!spec.program.environment.empty()) {
    spec.program.environment.clear();
    file = sweepfile::ResolvedYaml(spec);
  }
  Json best = Json::array();
  for (const BestTrial& trial : row.front) best.push_back(ToJson(trial));
  return {{"id", ToString(row.id)},
          {"state", row.state},
          {"reason", row.reason},
          {"created", row.created},
          {"ended", row.ended ? Json(*row.ended) : Json()},
          {"owner", row.owner},
          {"note", row.note},
          {"tags", row.tags},
          {"trials", row.trials},
          {"best", std::move(best)},
          {"file", std::move(file)},
          {"resolved", sweepfile::ToJson(spec)}};
}

Status WriteText(const fs::path& path, const std::string& text) {
  return WriteWhole(path, text, kPrivate);
}

}  // namespace

std::string CodePath(const std::string& server, const std::string& digest) {
  return "code/" + server + '/' + digest.substr(checkpoints::kDigestPrefix.size());
}

std::string ResultsPath(const std::string& name) { return "results/" + name; }

Result<TemporaryFolder> TemporaryFolder::Make(const fs::path& parent) {
  std::error_code failed;
  fs::create_directories(parent, failed);
  std::string path = parent / "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return SystemError("cannot create " + path, errno);
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) RemoveTree(path_);
}

void RemoveTree(const fs::path& folder) {
  code::MakeFoldersWritable(folder);
  std::error_code failed;
  fs::remove_all(folder, failed);
}

Status WriteCodeArchive(CodeStorage& code, const std::string& digest, const fs::path& folder,
                        const std::stop_token& stop) {
  const auto kept = code.Keep(digest);
  if (kept == nullptr)
    return Error{ErrorCode::kNotFound, "the server has no code with the digest " + digest};
  const auto read = [&](const std::string& file, uint64_t offset,
                        const std::string&) -> Result<checkpoints::Piece> {
    if (stop.stop_requested()) return Error{ErrorCode::kUnavailable, "the server is stopping"};
    return code.Read(digest, file, offset, checkpoints::kPieceBytesMax);
  };
  const fs::path copy = folder / "copy";
  const auto copied =
      code::DownloadCopy({.name = "code", .digest = digest, .read = read}, copy, kDiskFreeBytesMin);
  if (!copied.status.ok()) return copied.status;
  SystemCommands commands(kTarTimeout);
  const std::stop_callback end(stop, [&] { commands.End(); });
  const Result<CommandResult> made = commands.Run(
      {"tar", "-c", "-z", "--mode=u+w", "-f", folder / kCodeFile, "-C", code::TreeOf(copy), "."});
  if (!made.ok()) return Error{made.error().code, "cannot archive code: " + made.error().message};
  if (made->exit_code != 0)
    return Error{ErrorCode::kUnavailable, "cannot archive code: tar: " + made->err};
  return {};
}

Result<std::string> WriteResults(SweepId sweep, Reader& reader, const std::string& database,
                                 const fs::path& folder) {
  const auto seq = reader.LastSeq();
  if (!seq.ok()) return seq.error();
  const auto row = reader.Sweep(sweep);
  if (!row.ok()) return row.error();
  if (row->damaged) return Error{ErrorCode::kCorrupt, *row->damaged};
  const auto file = reader.FileOf(sweep);
  if (!file.ok()) return file.error();
  const std::string text =
      ToJson(*row, file->text).dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  if (Status written = WriteText(folder / kSweepFile, text); !written.ok()) return written.error();

  Sha256 hash;
  hash.Add(text);
  std::ofstream trials(folder / kTrialsFile, std::ios::binary);
  const ExportOptions options{.what = ExportOptions::What::kTrials,
                              .format = ExportOptions::Format::kJsonl,
                              .sweep = sweep};
  const Status exported = Export(database, options, [&](std::string_view line) {
    trials << line << '\n';
    hash.Add(line);
  });
  if (!exported.ok()) return exported.error();
  trials.close();
  if (!trials) return SystemError("cannot write " + (folder / kTrialsFile).string(), errno);
  return std::to_string(seq->value) + '-' + hash.Hex().substr(0, kVersionDigits);
}

}  // namespace attune::server
