#include "executor/transfer/fetcher.h"

#include <algorithm>
#include <utility>

#include "checkpoints/manifest.h"
#include "logging/log.h"
#include "system/files.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string CopyName(const std::string& digest) {
  return digest.starts_with(checkpoints::kDigestPrefix)
             ? digest.substr(checkpoints::kDigestPrefix.size())
             : digest;
}

}  // namespace

Fetcher::Fetcher(const CopyKind& kind, fs::path folder, CopyLimits limits, Done done)
    : kind_(kind),
      folder_(std::move(folder)),
      limits_(limits),
      done_(std::move(done)),
      thread_([this] { Run(); }) {}

Fetcher::~Fetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    abandoned_.request_stop();
    changed_.notify_all();
  }
  thread_.join();
}

void Fetcher::Fetch(const gang::AttemptId& attempt, WantedCopy wanted) {
  const std::lock_guard lock(mutex_);
  uses_[attempt].insert(CopyName(wanted.digest));
  queue_.push_back({attempt, std::move(wanted)});
  changed_.notify_all();
}

void Fetcher::Release(const gang::AttemptId& attempt) {
  const std::lock_guard lock(mutex_);
  const auto use = uses_.find(attempt);
  if (use == uses_.end()) return;
  for (const std::string& name : use->second)
    released_.insert_or_assign(name, FileTime::clock::now());
  uses_.erase(use);
  std::erase_if(queue_, [&](const Job& job) { return job.attempt == attempt; });
  if (current_ && current_->attempt == attempt) abandoned_.request_stop();
  changed_.notify_all();
}

void Fetcher::EvictUnused() {
  const std::lock_guard lock(mutex_);
  is_short_ = true;
  changed_.notify_all();
}

void Fetcher::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock,
                  [this] { return stop_ || is_short_ || !released_.empty() || !queue_.empty(); });
    if (stop_) return;
    if (queue_.empty() || is_short_) {
      const bool is_short = std::exchange(is_short_, false);
      lock.unlock();
      Evict(is_short ? Eviction::kAll : Eviction::kBeyondLimit);
      lock.lock();
      continue;
    }
    current_ = std::move(queue_.front());
    queue_.pop_front();
    abandoned_ = std::stop_source();
    lock.unlock();
    Fetched fetched = FetchCopy(*current_);
    lock.lock();
    if (!abandoned_.stop_requested()) done_(current_->attempt, std::move(fetched));
    current_.reset();
  }
}

Fetched Fetcher::FetchCopy(const Job& job) {
  Fetched fetched = FindOrDownload(job);
  fetched.name = job.wanted.name;
  if (!fetched.error.empty() || !job.wanted.prepare) return fetched;
  const Status prepared = job.wanted.prepare(fetched.folder);
  if (!prepared.ok()) fetched.error = prepared.error().message;
  return fetched;
}

Fetched Fetcher::FindOrDownload(const Job& job) {
  const WantedCopy& wanted = job.wanted;
  const std::string failed = wanted.name + " could not be fetched: ";
  if (!checkpoints::IsDigest(wanted.digest))
    return {.error = failed + "\"" + wanted.digest + "\" is not a digest", .is_final = true};
  const fs::path copy = folder_ / CopyName(wanted.digest);
  std::error_code absent;
  if (fs::exists(copy, absent)) {
    const Status verified = kind_.verify(copy, wanted.digest, abandoned_.get_token());
    if (verified.ok()) {
      fs::last_write_time(copy, FileTime::clock::now(), absent);  // marks it as used now
      return {.folder = copy};
    }
    if (abandoned_.stop_requested()) return {.error = failed + verified.error().message};
    logging::Warn("{}; fetching {} again", verified.error().message, wanted.name);
  }
  const auto begun = Clock::now();
  Transfer done = Download(wanted, copy);
  if (HasFailed(done.status, ErrorCode::kStorageFull)) {
    Evict(Eviction::kAll);
    done = Download(wanted, copy);
  }
  if (!done.status.ok())
    return {.error = failed + done.status.error().message, .is_final = done.is_final};
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  logging::Info("{}: {} is here: {:.1f} MB, of which {:.1f} MB came in {:.2f} s{}",
                gang::ToString(job.attempt), wanted.name, Megabytes(done.bytes),
                Megabytes(done.fetched), seconds, done.route);
  Evict(Eviction::kBeyondLimit);
  return {.folder = copy};
}

Transfer Fetcher::Download(const WantedCopy& wanted, const fs::path& copy) {
  reported_ = {};
  Report(wanted.digest, {});
  return wanted.download(
      copy, {.disk_free_bytes_min = limits_.disk_free_bytes_min,
             .stop = abandoned_.get_token(),
             .progress = [&](const Progress& progress) { Report(wanted.digest, progress); }});
}

// Each gang that waits learns of the progress, once.
void Fetcher::Report(const std::string& digest, const Progress& progress) {
  const auto now = Clock::now();
  if (now - reported_ < kProgressInterval) return;
  reported_ = now;
  std::vector<std::pair<decltype(WantedCopy::progress), std::optional<Progress>>> calls;
  {
    const std::lock_guard lock(mutex_);
    std::set<gang::AttemptId> told;
    const auto add = [&](const Job& job) {
      if (!job.wanted.progress || !told.insert(job.attempt).second) return;
      const bool is_downloading = job.wanted.digest == digest;
      calls.emplace_back(job.wanted.progress,
                         is_downloading ? std::optional(progress) : std::nullopt);
    };
    if (!abandoned_.stop_requested()) add(*current_);
    std::ranges::for_each(queue_, add);
  }
  for (const auto& [report, of_copy] : calls) report(of_copy);
}

void Fetcher::Remove(const fs::path& folder) const {
  if (const std::error_code failed = kind_.remove(folder))
    logging::Warn("cannot delete {}: {}", folder.string(), failed.message());
}

// Leftovers of interrupted deletions and downloads count and are deleted, too.
void Fetcher::Evict(Eviction eviction) {
  struct Entry {
    fs::path path;
    FileTime used;
    uint64_t bytes = 0;
  };
  std::set<std::string> in_use;
  std::map<std::string, FileTime> released;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [attempt, names] : uses_) in_use.insert(names.begin(), names.end());
    if (current_) in_use.insert(CopyName(current_->wanted.digest));
    released.swap(released_);
  }
  std::vector<Entry> entries;
  uint64_t all = 0;
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder_, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    std::error_code gone;
    if (const auto use = released.find(entry->path().filename()); use != released.end())
      fs::last_write_time(entry->path(), use->second, gone);
    entries.push_back({entry->path(), entry->last_write_time(gone), TotalFileBytes(entry->path())});
    if (gone)
      entries.pop_back();
    else
      all += entries.back().bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  const uint64_t bytes_max = eviction == Eviction::kAll ? 0 : limits_.bytes_max;
  const FileTime kept_from = FileTime::clock::now() - kind_.kept;
  for (const Entry& entry : entries) {
    if (all <= bytes_max) return;
    const bool is_kept = kind_.kept.count() > 0 && entry.used > kept_from;
    if (is_kept && eviction == Eviction::kBeyondLimit) return;  // later entries are newer
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
