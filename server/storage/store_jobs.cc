#include "server/storage/store_jobs.h"

#include <chrono>
#include <vector>

#include "base/result.h"
#include "checkpoints/manifest.h"
#include "core/log/stored_path.h"
#include "server/storage/archive.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kPartsKept{24};
constexpr int kTrialsPerPage = 500;

const std::string kManifest(checkpoints::kManifestFile);

std::string CheckpointsOf(const SweepInStore& in) {
  return StoredCheckpoints(in.identity, in.sweep);
}

std::string ResultsOf(const SweepInStore& in) {
  return ResultsPath(StoredSweepName(in.identity, in.sweep));
}

bool IsWaiting(const RetentionInput& input) {
  return std::ranges::any_of(input.wanted.copies, [&](const WantedCopy& copy) {
    return copy.stored != input.wanted.address && input.obtainable.contains(copy.id);
  });
}

}  // namespace

StoreJobs::StoreJobs(Options options, Reader& reader, CodeStorage& code, Stores& stores,
                     StoredSweeps& stored)
    : options_(std::move(options)), reader_(reader), code_(code), stores_(stores), stored_(stored) {
  RemoveTree(options_.scratch);
}

// ---- code and results ---------------------------------------------------------------------------

Status StoreJobs::StoreCode(const SweepInStore& in, const std::set<std::string>& patched,
                            const std::stop_token& stop) {
  const auto row = reader_.Sweep(in.sweep);
  if (!row.ok()) return row.error().code == ErrorCode::kNotFound ? Status() : row.error();
  std::set<std::string> digests = patched;
  if (const auto& code = row->spec.program.code) {
    digests.insert(code->digest);
    for (const PatchedCode& each : code->patched) digests.insert(each.digest);
  }
  Status noted = stored_.Update(in.sweep, in.identity, [&](StoredSweep& stored) {
    stored.address = in.address;
    stored.code.insert(digests.begin(), digests.end());
  });
  if (!noted.ok()) return noted;
  for (const std::string& digest : digests) {
    if (digest.empty()) continue;
    if (Status done = StoreSnapshot(in, digest, stop); !done.ok()) return done;
  }
  return {};
}

Status StoreJobs::StoreSnapshot(const SweepInStore& in, const std::string& digest,
                                const std::stop_token& stop) {
  if (stored_code_.contains({in.address, digest})) return {};
  const auto store = stores_.Open(in.address);
  if (!store.ok()) return store.error();
  const std::string path = CodePath(options_.server, digest);
  const auto files = (*store)->List(path, stop);
  if (!files.ok()) return files.error();
  if (!files->contains(kCodeFile)) {
    const auto folder = TemporaryFolder::Make(options_.scratch);
    if (!folder.ok()) return folder.error();
    if (Status written = WriteCodeArchive(code_, digest, folder->path(), stop); !written.ok())
      return written;
    const auto sent = (*store)->Upload(
        {.folder = folder->path(), .files = {}, .manifest = kCodeFile, .path = path}, stop);
    if (!sent.ok()) return sent.error();
  }
  stored_code_.emplace(in.address, digest);
  return {};
}

Status StoreJobs::StoreResults(const SweepInStore& in, const std::set<std::string>& patched,
                               const std::stop_token& stop) {
  const auto row = reader_.Sweep(in.sweep);
  if (!row.ok()) return row.error().code == ErrorCode::kNotFound ? Status() : row.error();
  const std::string ended = row->ended.value_or("");
  const auto known = stored_.Find(in.sweep, in.identity);
  if (known && !ended.empty() && known->results_of == ended) return {};
  if (Status done = StoreCode(in, patched, stop); !done.ok()) return done;

  const auto folder = TemporaryFolder::Make(options_.scratch);
  if (!folder.ok()) return folder.error();
  const auto version = WriteResults(in.sweep, reader_, options_.database, folder->path());
  if (!version.ok()) return version.error();
  const auto store = stores_.Open(in.address);
  if (!store.ok()) return store.error();
  const std::string path = ResultsOf(in);
  const auto sent = (*store)->Upload({.folder = folder->path(),
                                      .files = {kTrialsFile},
                                      .manifest = kSweepFile,
                                      .path = path + '/' + *version},
                                     stop);
  if (!sent.ok()) return sent.error();
  const auto files = (*store)->List(path, stop);
  if (!files.ok()) return files.error();
  std::set<std::string> versions;
  for (const auto& [name, bytes] : *files) versions.insert(name.substr(0, name.find('/')));
  versions.erase(*version);
  for (const std::string& earlier : versions) {
    if (Status removed = (*store)->Remove(path + '/' + earlier, kSweepFile, stop); !removed.ok())
      return removed;
  }
  return stored_.Update(in.sweep, in.identity,
                        [&](StoredSweep& stored) { stored.results_of = ended; });
}

// ---- checkpoints --------------------------------------------------------------------------------

Result<std::set<RecordedCopy>> StoreJobs::ReadRecorded(const SweepInStore& in) {
  std::set<RecordedCopy> recorded;
  for (uint32_t first = 0;; first += kTrialsPerPage) {
    const auto page = reader_.Checkpoints(in.sweep, TrialNumber(first), kTrialsPerPage);
    if (!page.ok()) return page.error();
    for (const KeptRow& row : page->checkpoints) {
      const CheckpointRow& checkpoint = row.checkpoint;
      if (checkpoint.stored != in.address) continue;
      recorded.insert({.id = {{in.sweep, row.trial}, checkpoint.attempt, checkpoint.step},
                       .digest = checkpoint.digest});
    }
    if (!page->more) return recorded;
  }
}

Result<RetentionInput> StoreJobs::ReadRetention(const SweepInStore& in) {
  RetentionInput input;
  auto wanted = ReadWanted(in.sweep, reader_, options_.query);
  if (!wanted.ok()) return wanted.error();
  input.wanted = *std::move(wanted);
  auto recorded = ReadRecorded(in);
  if (!recorded.ok()) return recorded.error();
  input.recorded = *std::move(recorded);
  options_.query([&](const Brain& brain) {
    for (const WantedCopy& copy : input.wanted.copies) {
      if (brain.state().folders.contains(FolderOf(copy.executor, copy.folder)))
        input.obtainable.insert(copy.id);
    }
  });
  for (const WantedCopy& copy : input.wanted.copies) {
    if (options_.is_skipped(StoredPath(in.identity, copy.id, copy.digest)))
      input.obtainable.erase(copy.id);
  }
  return input;
}

Status StoreJobs::Clean(const SweepInStore& in, bool dropped, const std::stop_token& stop) {
  auto before = ReadRetention(in);
  if (!before.ok()) return before.error().code == ErrorCode::kNotFound ? Status() : before.error();
  if (before->wanted.address != in.address) return {};
  const std::string ended = before->wanted.ended;
  const auto known = stored_.Find(in.sweep, in.identity);
  if (!known) return {};  // nothing was ever uploaded
  const bool has_ended = !ended.empty() && known->cleaned_of != ended;
  if (!dropped && !has_ended && PlanRetention(*before).to_forget.empty()) return {};

  const auto store = stores_.Open(in.address);
  if (!store.ok()) return store.error();
  const std::string path = CheckpointsOf(in);
  const auto files = (*store)->List(path, stop);
  if (!files.ok()) return files.error();
  // A copy that was stored after the listing counts as one that the store has.
  auto input = ReadRetention(in);
  if (!input.ok()) return input.error().code == ErrorCode::kNotFound ? Status() : input.error();
  input->recorded_before = std::move(before->recorded);
  AddListing(*files, *input);
  const RetentionPlan plan = PlanRetention(*input);
  for (const RecordedCopy& copy : plan.to_forget) {
    if (Status done = options_.execute(RecordStored{copy.id, copy.digest, ""}); !done.ok())
      return done;
  }
  for (const std::string& folder : plan.to_delete) {
    if (Status removed = (*store)->Remove(path + '/' + folder, kManifest, stop); !removed.ok())
      return removed;
  }
  if (IsWaiting(*input)) return {};
  return stored_.Update(in.sweep, in.identity,
                        [&](StoredSweep& stored) { stored.cleaned_of = ended; });
}

Status StoreJobs::RemoveAbandonedParts(const std::string& address, const std::stop_token& stop) {
  const auto store = stores_.Open(address);
  if (!store.ok()) return store.error();
  return (*store)->RemoveAbandonedParts("checkpoints", kPartsKept, stop);
}

// ---- deleted sweeps -----------------------------------------------------------------------------

bool StoreJobs::UsesCode(const StoredSweep& except, const std::string& digest) const {
  for (const StoredSweep& other : stored_.All()) {
    const bool is_other = other.sweep != except.sweep || other.identity != except.identity;
    if (is_other && other.address == except.address && other.code.contains(digest)) return true;
  }
  return false;
}

Status StoreJobs::Delete(const SweepInStore& in, const std::stop_token& stop) {
  const auto stored = stored_.Find(in.sweep, in.identity);
  if (!stored) return {};  // it has no files
  const auto store = stores_.Open(stored->address);
  if (!store.ok()) return store.error();
  std::vector<std::pair<std::string, std::string>> folders{{CheckpointsOf(in), kManifest},
                                                           {ResultsOf(in), kSweepFile}};
  for (const std::string& digest : stored->code) {
    if (UsesCode(*stored, digest)) continue;
    folders.emplace_back(CodePath(options_.server, digest), kCodeFile);
    stored_code_.erase({stored->address, digest});
  }
  for (const auto& [path, manifest] : folders) {
    if (Status removed = (*store)->Remove(path, manifest, stop); !removed.ok()) return removed;
  }
  return stored_.Remove(in.sweep, in.identity);
}

}  // namespace attune::server
