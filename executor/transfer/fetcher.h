#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/result.h"
#include "checkpoints/download.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// Makes the error for a piece that cannot be read now.
inline Error UnreadableError(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

// A source of checkpoints of other executors, and of snapshots of code.
class PieceSource {
 public:
  struct Answer {
    Result<checkpoints::Piece> piece;
    bool is_final = false;      // the error is permanent: the file does not exist
    std::string directly_from;  // the executor that sent it; empty: it came through the server
  };

  virtual ~PieceSource() = default;
  // Reads a piece of a file; the source chooses its size. Blocks. `memory` is the buffer of an
  // earlier piece, for reuse. Read() and Close() may be called on any thread, but not concurrently.
  virtual Answer Read(gang::RemoteFiles& files, const std::string& file, uint64_t offset,
                      std::string memory) = 0;
  virtual void Close() = 0;  // ends reading of the current files
  // Makes the current Read() and all reads until Close() fail. Does not block. Thread-safe.
  virtual void Cancel() = 0;
};

struct Fetched {
  std::filesystem::path folder;  // folder of the copy
  std::string error;             // empty: no error
  bool is_final = false;  // the error is permanent: the files are damaged or gone at their source
};

// What a Fetcher fetches: kCheckpoints or kCode.
struct FetchedKind {
  checkpoints::Downloaded (*download)(const checkpoints::DownloadSource& source,
                                      const std::filesystem::path& copy,
                                      uint64_t disk_free_bytes_min);
  // Whether a copy from an earlier fetch still is what its digest says.
  Status (*verify)(const std::filesystem::path& copy, const std::string& digest);
  std::error_code (*remove)(const std::filesystem::path& copy);
  std::string_view index_file;  // describes the others; does not count as transferred
};
extern const FetchedKind kCheckpoints;
extern const FetchedKind kCode;

struct CopyLimits {
  uint64_t bytes_max = 0;            // limit for copies that no gang uses
  uint64_t disk_free_bytes_min = 0;  // no download starts that would leave less
};

// Fetches files that gangs on this host need before they start, one after another on its own
// thread: checkpoints of other hosts, or snapshots of code. Each copy is a folder named by its
// digest, so a second gang can use it immediately. An interrupted download resumes at the byte
// where it stopped.
//
// A copy that no gang uses is kept for later gangs, up to CopyLimits::bytes_max and until the disk
// is full. The least recently used copies are deleted first.
//
// If the source does not answer, reads are retried for kRetryTimeout. Executors send files directly
// without encryption; if such a file does not match the manifest, it is fetched again through the
// server. A copy of code that has changed is replaced in one step, because trials may run from it.
class Fetcher {
 public:
  static constexpr std::chrono::milliseconds kRetryTimeout{20'000};
  static constexpr std::chrono::milliseconds kPause{250};

  // Called on the fetcher's thread; must not call the fetcher.
  using Done = std::function<void(const gang::AttemptId& attempt, Fetched fetched)>;

  // No other executor may use `folder`. The source must outlive the fetcher.
  Fetcher(const FetchedKind& kind, std::filesystem::path folder, CopyLimits limits,
          PieceSource& source, Done done, std::chrono::milliseconds retry_timeout = kRetryTimeout);
  ~Fetcher();  // cancels the current download

  // Called on the fetcher's thread with the folder of the copy, before `done`. Its error is that of
  // the fetch.
  using Prepare = std::function<Status(const std::filesystem::path& copy)>;

  // `done` follows, unless the attempt is released before. This and the functions below are
  // thread-safe.
  void Fetch(const gang::AttemptId& attempt, gang::RemoteFiles files, const std::string& digest,
             Prepare prepare = {});

  // The attempt no longer needs its copy.
  void Release(const gang::AttemptId& attempt);

  // Deletes all copies that no gang uses, because the disk is short.
  void EvictUnused();

 private:
  struct Job {
    gang::AttemptId attempt;
    gang::RemoteFiles files;
    std::string digest;
    Prepare prepare;
  };
  // How files were transferred.
  struct Transfer {
    bool is_final = false;      // the last error is permanent
    uint64_t direct_bytes = 0;  // bytes that came directly
    std::string directly_from;  // the last executor that sent some
  };

  void Run();
  Fetched FetchCopy(Job job);
  Fetched FindOrDownload(Job& job);
  checkpoints::Downloaded Download(Job& job, const std::filesystem::path& copy, Transfer& transfer);
  void Remove(const std::filesystem::path& folder) const;
  bool IsAbandoned();
  void Pause();
  void Evict(uint64_t bytes_max);

  const FetchedKind& kind_;
  const std::filesystem::path folder_;
  const CopyLimits limits_;
  PieceSource& source_;
  const Done done_;
  const std::chrono::milliseconds retry_timeout_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;  // this and the members below: under mutex_; the first job is in progress
  std::map<gang::AttemptId, std::string> uses_;  // name of the folder of its copy
  bool abandoned_ = false;                       // no gang needs the job in progress any more
  bool copy_released_ = false;                   // a copy was released since the last eviction
  bool is_short_ = false;                        // the disk is short
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
