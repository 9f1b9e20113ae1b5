#include "executor/transfer/fetcher.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoints/manifest.h"
#include "checkpoints/removal.h"
#include "code/tree.h"
#include "logging/log.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using checkpoints::Downloaded;
using Clock = std::chrono::steady_clock;

std::string CopyName(const std::string& digest) {
  return digest.starts_with(checkpoints::kDigestPrefix)
             ? digest.substr(checkpoints::kDigestPrefix.size())
             : digest;
}

bool HasFailed(const Downloaded& done, ErrorCode code) {
  return !done.status.ok() && done.status.error().code == code;
}

double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

Downloaded DownloadCheckpoint(const checkpoints::DownloadSource& source, const fs::path& copy,
                              uint64_t disk_free_bytes_min) {
  return checkpoints::Download(source, copy, {}, disk_free_bytes_min);
}

// Nobody writes to copies of checkpoints, and resuming compares their hashes.
Status TrustCheckpoint(const fs::path&, const std::string&) { return {}; }

}  // namespace

const FetchedKind kCheckpoints{.download = DownloadCheckpoint,
                               .verify = TrustCheckpoint,
                               .remove = checkpoints::RemoveFolder,
                               .index_file = checkpoints::kManifestFile};
const FetchedKind kCode{.download = code::DownloadCopy,
                        .verify = code::VerifyCopy,
                        .remove = code::RemoveCopy,
                        .index_file = code::kManifestPart};

Fetcher::Fetcher(const FetchedKind& kind, fs::path folder, CopyLimits limits, PieceSource& source,
                 Done done, std::chrono::milliseconds retry_timeout)
    : kind_(kind),
      folder_(std::move(folder)),
      limits_(limits),
      source_(source),
      done_(std::move(done)),
      retry_timeout_(retry_timeout),
      thread_([this] { Run(); }) {}

Fetcher::~Fetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    abandoned_ = true;
    source_.Cancel();
    changed_.notify_all();
  }
  thread_.join();
}

void Fetcher::Fetch(const gang::AttemptId& attempt, gang::RemoteFiles files,
                    const std::string& digest, Prepare prepare) {
  const std::lock_guard lock(mutex_);
  uses_[attempt] = CopyName(digest);
  queue_.push_back({attempt, std::move(files), digest, std::move(prepare)});
  changed_.notify_all();
}

void Fetcher::Release(const gang::AttemptId& attempt) {
  const std::lock_guard lock(mutex_);
  if (uses_.erase(attempt) == 0) return;
  const auto job = std::ranges::find(queue_, attempt, &Job::attempt);
  copy_released_ |= job == queue_.end();
  changed_.notify_all();
  // Run() skips a job whose attempt was released.
  if (job == queue_.end() || job != queue_.begin()) return;
  abandoned_ = true;
  source_.Cancel();
}

void Fetcher::EvictUnused() {
  const std::lock_guard lock(mutex_);
  is_short_ = true;
  changed_.notify_all();
}

void Fetcher::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || copy_released_ || is_short_ || !queue_.empty(); });
    if (stop_) return;
    if (queue_.empty() || is_short_) {
      const uint64_t bytes_max = is_short_ ? 0 : limits_.bytes_max;
      copy_released_ = false;
      is_short_ = false;
      lock.unlock();
      Evict(bytes_max);
      lock.lock();
      continue;
    }
    const Job job = queue_.front();
    abandoned_ = !uses_.contains(job.attempt);
    if (!abandoned_) {
      lock.unlock();
      Fetched fetched = FetchCopy(job);
      lock.lock();
      if (!abandoned_) done_(job.attempt, std::move(fetched));
    }
    source_.Close();
    queue_.pop_front();
  }
}

Fetched Fetcher::FetchCopy(Job job) {
  Fetched fetched = FindOrDownload(job);
  if (!fetched.error.empty() || !job.prepare) return fetched;
  const Status prepared = job.prepare(fetched.folder);
  return prepared.ok() ? fetched : Fetched{.error = prepared.error().message};
}

Fetched Fetcher::FindOrDownload(Job& job) {
  const std::string name = gang::ToString(job.files);
  if (!checkpoints::IsDigest(job.digest))
    return {.error = name + " could not be fetched: \"" + job.digest + "\" is not a digest",
            .is_final = true};
  const fs::path copy = folder_ / CopyName(job.digest);
  std::error_code absent;
  if (fs::exists(copy, absent)) {
    const Status verified = kind_.verify(copy, job.digest);
    if (verified.ok()) {
      fs::last_write_time(copy, fs::file_time_type::clock::now(), absent);  // marks it as used now
      return {.folder = copy};
    }
    logging::Warn("{}; fetching {} again", verified.error().message, name);
  }
  const auto begun = Clock::now();
  Transfer transfer;
  Downloaded done = Download(job, copy, transfer);
  if (HasFailed(done, ErrorCode::kStorageFull)) {
    Evict(0);
    done = Download(job, copy, transfer);
  }
  // Files from other executors, or those of an interrupted download, may be damaged.
  const bool resumed = done.fetched < done.bytes;
  if (HasFailed(done, ErrorCode::kCorrupt) && (resumed || !transfer.directly_from.empty())) {
    logging::Warn("{}; fetching it again through the server", done.status.error().message);
    job.files.servers.clear();
    done = Download(job, copy, transfer);
  }
  if (!done.status.ok())
    return {.error = name + " could not be fetched: " + done.status.error().message,
            .is_final = transfer.is_final || HasFailed(done, ErrorCode::kCorrupt)};
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  logging::Info("{}: {} is here: {:.1f} MB, of which {:.1f} MB came in {:.2f} s{}",
                gang::ToString(job.attempt), name, Megabytes(done.bytes), Megabytes(done.fetched),
                seconds,
                transfer.direct_bytes == 0
                    ? ""
                    : fmt::format(", {:.1f} MB directly from {}", Megabytes(transfer.direct_bytes),
                                  transfer.directly_from));
  Evict(limits_.bytes_max);
  return {.folder = copy};
}

void Fetcher::Remove(const fs::path& folder) const {
  if (const std::error_code failed = kind_.remove(folder))
    logging::Warn("cannot delete {}: {}", folder.string(), failed.message());
}

Downloaded Fetcher::Download(Job& job, const fs::path& copy, Transfer& transfer) {
  auto heard = Clock::now();  // time of the last answer from the source
  const auto read = [&](const std::string& file, uint64_t offset,
                        std::string memory) -> Result<checkpoints::Piece> {
    for (;;) {
      if (IsAbandoned()) return UnreadableError("no gang needs it any more");
      PieceSource::Answer answer = source_.Read(job.files, file, offset, std::exchange(memory, {}));
      transfer.is_final = answer.is_final;
      if (!answer.directly_from.empty()) {
        transfer.directly_from = answer.directly_from;
        if (file != kind_.index_file) transfer.direct_bytes += answer.piece->data.size();
      }
      if (answer.piece.ok()) heard = Clock::now();
      if (answer.piece.ok() || answer.is_final || Clock::now() - heard >= retry_timeout_)
        return std::move(answer.piece);
      Pause();
    }
  };
  const std::string name =
      job.files.code.empty() ? gang::ToString(job.files.name) : gang::ToString(job.files);
  return kind_.download({.name = name, .digest = job.digest, .read = read}, copy,
                        limits_.disk_free_bytes_min);
}

bool Fetcher::IsAbandoned() {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

void Fetcher::Pause() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::min(kPause, retry_timeout_), [this] { return abandoned_; });
}

// Leftovers of interrupted deletions and downloads count and are deleted, too.
void Fetcher::Evict(uint64_t bytes_max) {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes = 0;
  };
  std::set<std::string> in_use;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [attempt, name] : uses_) in_use.insert(name);
  }
  std::vector<Entry> entries;
  uint64_t all = 0;
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder_, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    std::error_code gone;
    entries.push_back({entry->path(), entry->last_write_time(gone), TotalFileBytes(entry->path())});
    if (gone)
      entries.pop_back();
    else
      all += entries.back().bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (all <= bytes_max) return;
    // The folder of a download in progress is .NAME.part-…
    const std::string name = entry.path.filename();
    if (std::ranges::any_of(in_use, [&](const std::string& used) {
          return name == used || name.starts_with("." + used);
        }))
      continue;
    Remove(entry.path);
    all -= entry.bytes;
  }
}

}  // namespace attune::agent
