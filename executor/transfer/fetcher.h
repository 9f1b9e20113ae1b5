#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/result.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// How far a download is.
struct Progress {
  uint64_t bytes_done = 0;
  uint64_t bytes_all = 0;  // 0: not known
};

// What a download gets from its Fetcher.
struct FetchContext {
  uint64_t disk_free_bytes_min = 0;               // bytes that must stay free on the disk
  std::stop_token stop;                           // no gang needs the copy any more
  std::function<void(const Progress&)> progress;  // the download may call it often
};

// The result of a download.
struct Transfer {
  Status status;
  bool is_final = false;  // the error is permanent: the files are damaged or gone at their source
  uint64_t bytes = 0;     // of the copy
  uint64_t fetched = 0;   // by this download; an earlier one fetched the others
  std::string route;      // for the log: ", 4.2 MB directly from executor a"; empty: nothing to say
};

// A copy that a gang needs. The functions are called on the fetcher's thread.
struct WantedCopy {
  std::string name;    // for logs and messages: `checkpoint s3/17/2-900`
  std::string digest;  // sha256:…; its digits are the name of the copy's folder

  // Downloads the files to the folder `copy`, which appears, or is replaced in one step, when they
  // are complete.
  std::function<Transfer(const std::filesystem::path& copy, const FetchContext& context)> download;

  // Called with the folder of the copy, before `done`. Its error is that of the fetch.
  std::function<Status(const std::filesystem::path& copy)> prepare = {};

  // Called when a download begins and then every few seconds, while the copy is missing. nullopt:
  // another copy is downloaded first.
  std::function<void(const std::optional<Progress>& progress)> progress = {};
};

struct Fetched {
  std::string name = {};              // WantedCopy::name
  std::filesystem::path folder = {};  // of the copy
  std::string error = {};             // empty: no error
  bool is_final = false;              // see Transfer
};

// What a Fetcher does with copies of one kind.
struct CopyKind {
  // Whether a copy from an earlier fetch still is what its digest says. May end early with an error
  // if `stop` is requested.
  Status (*verify)(const std::filesystem::path& copy, const std::string& digest,
                   const std::stop_token& stop);
  std::error_code (*remove)(const std::filesystem::path& copy);
  // An unused copy stays for this long after its last use, unless the disk is short.
  std::chrono::seconds kept{0};
};

struct CopyLimits {
  uint64_t bytes_max = 0;            // limit for copies that no gang uses
  uint64_t disk_free_bytes_min = 0;  // no download starts that would leave less
};

inline double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

inline bool HasFailed(const Status& status, ErrorCode code) {
  return !status.ok() && status.error().code == code;
}

// Fetches files that gangs on this host need before they start, one after another on its own
// thread: checkpoints of other hosts, snapshots of code, or data. Each copy is a folder named by
// its digest, so a second gang can use it immediately.
//
// A copy that no gang uses is kept for later gangs, up to CopyLimits::bytes_max and until the disk
// is full. The least recently used copies are deleted first.
class Fetcher {
 public:
  // Called on the fetcher's thread; must not call the fetcher.
  using Done = std::function<void(const gang::AttemptId& attempt, Fetched fetched)>;

  // The least time between two calls of WantedCopy::progress.
  static constexpr std::chrono::seconds kProgressInterval{5};

  // No other executor may use `folder`.
  Fetcher(const CopyKind& kind, std::filesystem::path folder, CopyLimits limits, Done done);
  ~Fetcher();  // cancels the current download

  // `done` follows, unless the attempt is released before. An attempt may use several copies. This
  // and the functions below are thread-safe.
  void Fetch(const gang::AttemptId& attempt, WantedCopy wanted);

  // The attempt no longer needs its copies.
  void Release(const gang::AttemptId& attempt);

  // Deletes all copies that no gang uses, because the disk is short.
  void EvictUnused();

 private:
  using FileTime = std::filesystem::file_time_type;
  struct Job {
    gang::AttemptId attempt;
    WantedCopy wanted;
  };
  // Which unused copies an eviction deletes.
  enum class Eviction { kBeyondLimit, kAll };

  void Run();
  Fetched FetchCopy(const Job& job);
  Fetched FindOrDownload(const Job& job);
  Transfer Download(const WantedCopy& wanted, const std::filesystem::path& copy);
  void Report(const std::string& digest, const Progress& progress);
  void Remove(const std::filesystem::path& folder) const;
  void Evict(Eviction eviction);

  const CopyKind& kind_;
  const std::filesystem::path folder_;
  const CopyLimits limits_;
  const Done done_;
  std::chrono::steady_clock::time_point reported_;  // the last call of Report(), on the thread

  std::mutex mutex_;
  std::condition_variable changed_;
  // This and the members below: under mutex_.
  std::deque<Job> queue_;
  std::optional<Job> current_;  // in progress; only the thread changes it
  std::stop_source abandoned_;  // no gang needs the current job any more
  std::map<gang::AttemptId, std::set<std::string>> uses_;  // names of the folders of its copies
  std::map<std::string, FileTime> released_;  // copies that were released since the last eviction
  bool is_short_ = false;                     // the disk is short
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
