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
#include <thread>

#include "base/result.h"
#include "checkpoints/download.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// Makes the error for a piece that cannot be read now.
inline Error UnreadableError(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

// A source of checkpoints of other executors.
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
  virtual Answer Read(gang::RemoteCheckpoint& checkpoint, const std::string& file, uint64_t offset,
                      std::string memory) = 0;
  virtual void Close() = 0;  // ends reading of the current checkpoint
  // Makes the current Read() and all reads until Close() fail. Does not block. Thread-safe.
  virtual void Cancel() = 0;
};

struct Fetched {
  std::filesystem::path folder;  // folder of the copy
  std::string error;             // empty: no error
  bool is_final = false;  // the error is permanent: the checkpoint is damaged or gone at its source
};

struct CopyLimits {
  uint64_t bytes_max = 0;            // limit for copies that no gang uses
  uint64_t disk_free_bytes_min = 0;  // no download starts that would leave less
};

// Fetches checkpoints of other hosts that gangs on this host resume from, one after another on its
// own thread. Each copy is a folder named by the checkpoint's digest, so a second gang can use it
// immediately. An interrupted download resumes at the byte where it stopped.
//
// A copy that no gang uses is kept for later gangs, up to CopyLimits::bytes_max and until the disk
// is full. The least recently used copies are deleted first.
//
// If the source does not answer, reads are retried for kRetryTimeout. Executors send files directly
// without encryption; if such a file does not match the manifest, it is fetched again through the
// server.
class CheckpointFetcher {
 public:
  static constexpr std::chrono::milliseconds kRetryTimeout{20'000};
  static constexpr std::chrono::milliseconds kPause{250};

  // Called on the fetcher's thread; must not call the fetcher.
  using Done = std::function<void(const gang::AttemptId& attempt, Fetched fetched)>;

  // No other executor may use `folder`. The source must outlive the fetcher.
  CheckpointFetcher(std::filesystem::path folder, CopyLimits limits, PieceSource& source, Done done,
                    std::chrono::milliseconds retry_timeout = kRetryTimeout);
  ~CheckpointFetcher();  // cancels the current download

  // `done` follows, unless the attempt is released before. This and the functions below are
  // thread-safe.
  void Fetch(const gang::AttemptId& attempt, gang::RemoteCheckpoint checkpoint,
             const std::string& digest);

  // The attempt no longer needs its copy.
  void Release(const gang::AttemptId& attempt);

  // Deletes all copies that no gang uses, because the disk is short.
  void EvictUnused();

 private:
  struct Job {
    gang::AttemptId attempt;
    gang::RemoteCheckpoint checkpoint;
    std::string digest;
  };
  // How a checkpoint was transferred.
  struct Transfer {
    bool is_final = false;      // the last error is permanent
    uint64_t direct_bytes = 0;  // bytes of its files that came directly
    std::string directly_from;  // the last executor that sent some
  };

  void Run();
  Fetched FetchCopy(Job job);
  checkpoints::Downloaded Download(Job& job, const std::filesystem::path& copy, Transfer& transfer);
  bool IsAbandoned();
  void Pause();
  void Evict(uint64_t bytes_max);

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
