#include "executor/transfer/uploader.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/message_limits.h"
#include "base/utf8.h"
#include "checkpoints/download.h"
#include "checkpoints/manifest.h"
#include "checkpoints/piece.h"
#include "executor/gang/spec.h"
#include "executor/transfer/checkpoint_sender.h"
#include "executor/transfer/fetcher.h"
#include "executor/transfer/variables.h"
#include "logging/log.h"
#include "object_storage/address.h"
#include "system/system_error.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using object_storage::UploadRequest;

// A tenth of the CPU time of a busy program of normal priority. With less, a small upload would
// take many seconds on a host that trains with all of its cores.
constexpr int kNiceness = 10;
constexpr int kDiskPriority = 7;  // the lowest one that still gets its turn

std::string CheckpointText(const v1::Upload& upload) {
  const v1::CheckpointName& name = upload.checkpoint();
  return "checkpoint " + gang::ToString(gang::CheckpointName{name.sweep(), name.trial(),
                                                             name.attempt(), name.step()});
}

// Whether only people, or other credentials, can end the error.
bool Lasts(ErrorCode code) {
  return code == ErrorCode::kDenied || code == ErrorCode::kInvalid ||
         code == ErrorCode::kStorageFull;
}

Error DamagedFile(const std::string& name, const std::string& fault) {
  return {ErrorCode::kCorrupt, '"' + CutEnd(ValidUtf8(name), kPlaceBytesMax) + "\" " + fault};
}

// Reads the manifest and compares the sizes of the files with it.
Result<UploadRequest> MakeRequest(const gang::Folders& folders, const v1::Upload& upload) {
  const v1::CheckpointName& checkpoint = upload.checkpoint();
  const auto folder = CheckpointFolderPath(folders, checkpoint.sweep(), checkpoint.trial(),
                                           fs::path(upload.path()).filename());
  if (!folder)
    return Error{ErrorCode::kNotFound,
                 ValidUtf8('"' + upload.path() + "\" is not the folder of a checkpoint")};
  const auto read = [&](const std::string& file, uint64_t offset, std::string) {
    return checkpoints::ReadPiece(*folder, file, offset, checkpoints::kPieceBytesMax);
  };
  const std::string manifest_file(checkpoints::kManifestFile);
  const Result<std::string> text =
      checkpoints::FetchText({.name = folder->string(), .digest = upload.digest(), .read = read},
                             manifest_file, checkpoints::kManifestBytesMax);
  if (!text.ok()) return text.error();
  const Result<checkpoints::Manifest> manifest = checkpoints::ReadManifest(*text, upload.digest());
  if (!manifest.ok()) return manifest.error();

  UploadRequest request{
      .folder = *folder, .files = {}, .manifest = manifest_file, .path = upload.stored()};
  for (const auto& [name, entry] : manifest->files) {
    if (!IsUtf8(name) || HasControlCharacters(name))
      return DamagedFile(name, "has control characters, which no store accepts; rename the file");
    const auto opened = checkpoints::OpenFile(*folder, name);
    if (!opened.ok()) return opened.error();
    if (opened->bytes != entry.bytes)
      return DamagedFile(name, "has " + std::to_string(opened->bytes) + " bytes instead of " +
                                   std::to_string(entry.bytes));
    request.files.push_back(name);
  }
  return request;
}

// Lowers the priorities of CPU and disk of this thread, and of processes that it starts.
void LowerPriority() {
  // Names of <linux/ioprio.h>, which C++ cannot include: a parameter in it is called `class`.
  constexpr int kWhoProcess = 1;       // IOPRIO_WHO_PROCESS
  constexpr int kClassBestEffort = 2;  // IOPRIO_CLASS_BE
  constexpr int kClassShift = 13;      // IOPRIO_CLASS_SHIFT
  constexpr int kThisThread = 0;
  setpriority(PRIO_PROCESS, kThisThread, kNiceness);
  syscall(SYS_ioprio_set, kWhoProcess, kThisThread,
          kClassBestEffort << kClassShift | kDiskPriority);
}

}  // namespace

Uploader::Uploader(gang::Folders folders, object_storage::Environment environment, Events events,
                   UploadOptions options)
    : folders_(std::move(folders)),
      environment_(std::move(environment)),
      events_(std::move(events)),
      options_(options),
      thread_([this] { Run(); }) {}

Uploader::~Uploader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    cancel_.request_stop();
    changed_.notify_all();
  }
  thread_.join();
}

void Uploader::SetUploads(const v1::Uploads& uploads) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  std::vector<Entry> entries;
  std::set<std::string> addresses;
  bool has_changed = uploads.uploads_size() != std::ssize(entries_);
  for (const v1::Upload& upload : uploads.uploads()) {
    addresses.insert(upload.address());
    const std::string key = upload.SerializeAsString();
    const auto known = std::ranges::find(entries_, key, &Entry::key);
    has_changed |= known == entries_.end();
    entries.push_back(known != entries_.end()
                          ? std::move(*known)
                          : Entry{.key = key, .upload = upload, .ready_at = now + options_.settle});
  }
  if (has_changed) {
    for (Entry& entry : entries) entry.is_skipped = false;
  }
  entries_ = std::move(entries);

  Settings settings{ToVariables(uploads.environment()), uploads.bytes_per_second_max()};
  std::erase_if(pauses_, [&](const auto& pause) { return !addresses.contains(pause.first); });
  if (settings.environment != settings_.environment) {
    for (auto& [address, pause] : pauses_) {
      pause.until = now;
      pause.backoff = options_.backoff;
    }
  }
  settings_ = std::move(settings);

  if (!current_.empty() && std::ranges::find(entries_, current_, &Entry::key) == entries_.end())
    cancel_.request_stop();
  changed_.notify_all();
}

void Uploader::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    ReportProblem();
    Clock::time_point wake_at = Clock::time_point::max();
    const std::optional<Job> job = NextJob(wake_at);
    if (!job) {
      changed_.wait_until(lock, wake_at);
      continue;
    }
    current_ = job->key;
    cancel_ = std::stop_source();
    const std::stop_token cancelled = cancel_.get_token();
    lock.unlock();
    const Outcome outcome = UploadAtLowPriority(*job, cancelled);
    lock.lock();
    current_.clear();
    OnOutcome(*job, outcome);
  }
}

// The upload that must start now. If there is none, lowers `wake_at` to the time at which one may
// start.
std::optional<Uploader::Job> Uploader::NextJob(Clock::time_point& wake_at) const {
  const Clock::time_point now = Clock::now();
  const Entry* next = nullptr;
  for (const Entry& entry : entries_) {
    if (!entry.Waits()) continue;
    const auto pause = pauses_.find(entry.upload.address());
    const Clock::time_point start =
        pause == pauses_.end() ? entry.ready_at : std::max(entry.ready_at, pause->second.until);
    if (start > now)
      wake_at = std::min(wake_at, start);
    else if (next == nullptr || entry.failures < next->failures)
      next = &entry;
  }
  if (next == nullptr) return std::nullopt;
  return Job{next->key, next->upload, settings_};
}

// Only uploads that wait can be paused.
void Uploader::ReportProblem() {
  const auto paused = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.Waits() && pauses_.contains(entry.upload.address());
  });
  const std::string problem =
      paused == entries_.end() ? "" : pauses_.at(paused->upload.address()).problem;
  if (problem == told_problem_) return;
  told_problem_ = problem;
  if (problem.empty())
    logging::Info("uploads to object stores are no longer paused");
  else
    logging::Warn("uploads to an object store are paused: {}", problem);
  events_.problem(problem);
}

void Uploader::OnOutcome(const Job& job, const Outcome& outcome) {
  const auto entry = std::ranges::find(entries_, job.key, &Entry::key);
  if (stop_ || entry == entries_.end()) return;
  if (outcome.uploaded.ok()) {
    entry->is_done = true;
    pauses_.erase(job.upload.address());
    return events_.stored(job.upload);
  }
  // It was cancelled, and is in the list again.
  if (cancel_.stop_requested()) return;
  if (!outcome.is_fault_of_files) return OnError(job, *entry, outcome.uploaded.error());
  entry->is_skipped = true;
  if (std::exchange(entry->is_skip_told, true)) return;
  logging::Warn("{} is not uploaded: {}", CheckpointText(job.upload),
                outcome.uploaded.error().message);
  events_.skipped(job.upload.stored());
}

void Uploader::OnError(const Job& job, Entry& entry, const Error& error) {
  ++entry.failures;
  Pause& pause =
      pauses_.try_emplace(job.upload.address(), Pause{.backoff = options_.backoff}).first->second;
  pause.problem = CutEnd(ValidUtf8(error.message), kProblemBytesMax);
  pause.until = Clock::now();
  // Credentials that came meanwhile may help.
  if (job.settings.environment != settings_.environment) return;
  const auto backoff = std::min(pause.backoff, options_.pause);
  pause.until += Lasts(error.code) ? options_.pause : backoff;
  if (!Lasts(error.code)) pause.backoff = 2 * backoff;
}

// The thread of the uploader keeps its priority: a thread cannot raise it again, and a thread with
// a low priority would hold the lock for long.
Uploader::Outcome Uploader::UploadAtLowPriority(const Job& job, const std::stop_token& stop) {
  std::optional<Outcome> outcome;
  try {
    std::thread([&] {
      LowerPriority();
      outcome = Upload(job, stop);
    }).join();
  } catch (const std::system_error& failed) {
    return {.uploaded = SystemError("cannot start a thread for uploads", failed.code().value())};
  }
  return *std::move(outcome);
}

Uploader::Outcome Uploader::Upload(const Job& job, const std::stop_token& stop) {
  const Result<UploadRequest> request = MakeRequest(folders_, job.upload);
  if (!request.ok()) return {.uploaded = request.error(), .is_fault_of_files = true};
  if (const Status opened = Open(job); !opened.ok()) return {.uploaded = opened.error()};
  const auto begun = Clock::now();
  Result<object_storage::Uploaded> uploaded = store_->store.Upload(*request, stop);
  if (!uploaded.ok()) {
    store_.reset();
    const bool is_gone = uploaded.error().code == ErrorCode::kNotFound;
    return {.uploaded = std::move(uploaded), .is_fault_of_files = is_gone};
  }
  logging::Info("{} is stored at {}: {} files with {:.1f} MB were sent in {:.2f} s",
                CheckpointText(job.upload), object_storage::ToString(store_->store.address()),
                uploaded->files, Megabytes(uploaded->bytes),
                std::chrono::duration<double>(Clock::now() - begun).count());
  return {.uploaded = std::move(uploaded)};
}

// Opens the store of the upload, unless it is open.
Status Uploader::Open(const Job& job) {
  const std::string& address = job.upload.address();
  if (store_ && store_->address == address && store_->settings == job.settings) return {};
  store_.reset();
  object_storage::StoreOptions options = options_.store;
  options.bytes_per_second_max = job.settings.bytes_per_second_max;
  Result<object_storage::ObjectStore> store =
      object_storage::ObjectStore::Open(address, environment_, job.settings.environment, options);
  if (!store.ok()) return store.error();
  store_.emplace(OpenStore{address, job.settings, *std::move(store)});
  return {};
}

}  // namespace attune::agent
