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

// Why a piece cannot be read now.
inline Error Unreadable(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

// Where checkpoints of other executors are read.
class PieceSource {
 public:
  struct Answer {
    Result<checkpoints::Piece> piece;
    bool is_final = false;      // its error will not pass: there is no such file
    std::string directly_from;  // the executor; empty: by the server
  };

  virtual ~PieceSource() = default;
  // Part of a file, as much as the source likes to give; waits for it. `memory` is that of an
  // earlier piece, to be used again. Any thread, one at a time; so with the next.
  virtual Answer Read(gang::FarCheckpoint& checkpoint, const std::string& file, uint64_t offset,
                      std::string memory) = 0;
  virtual void Close() = 0;  // no more is read of the last checkpoint
  // What is being read fails, and what is read until Close(). Does not wait. Any thread.
  virtual void Cancel() = 0;
};

struct Fetched {
  std::filesystem::path folder;  // of the copy
  std::string error;             // empty when there is none
  bool is_final = false;         // the checkpoint is damaged, or gone, where it lies
};

struct CopiesRoom {
  uint64_t bytes_max = 0;            // of copies that no gang needs, so much stays
  uint64_t disk_free_bytes_min = 0;  // nothing is begun that would leave less of the disk
};

// Brings checkpoints that gangs here go on from and that lie elsewhere, one after the other, on a
// thread of its own. Each copy is a folder named by the checkpoint's digest, so that a second gang
// that needs it waits for nothing; what was cut off, in whatever way, goes on at the byte it had.
//
// A copy that no gang needs stays for the next, until there are more than so many bytes, or the
// disk is full: then those go first that were not used for longest.
//
// Where the source is not there, it is asked again for so long as kPatience before that is an
// error. What an executor has sent directly, in the clear, and is not what the manifest says, is
// asked for by the server before that is one.
class CheckpointFetcher {
 public:
  static constexpr std::chrono::milliseconds kPatience{20'000};
  static constexpr std::chrono::milliseconds kPause{250};

  // Called on the fetcher's thread; must not call the fetcher.
  using Done = std::function<void(const gang::AttemptId& attempt, Fetched fetched)>;

  // `folder` is this executor's alone. The source outlives the fetcher.
  CheckpointFetcher(std::filesystem::path folder, CopiesRoom room, PieceSource& source, Done done,
                    std::chrono::milliseconds patience = kPatience);
  ~CheckpointFetcher();  // ends what is under way

  // Done follows, unless the attempt is released before. Any thread, as below.
  void Fetch(const gang::AttemptId& attempt, gang::FarCheckpoint checkpoint,
             const std::string& digest);

  // The attempt needs its copy no longer.
  void Release(const gang::AttemptId& attempt);

  // The disk is short: copies that no gang needs go, all of them.
  void MakeRoom();

 private:
  struct Job {
    gang::AttemptId attempt;
    gang::FarCheckpoint checkpoint;
    std::string digest;
  };
  // How a checkpoint came.
  struct Transfer {
    bool is_final = false;      // the last error
    uint64_t direct_bytes = 0;  // of its files
    std::string directly_from;  // whom these came from, last
  };

  void Run();
  Fetched Bring(Job job);
  checkpoints::Downloaded Download(Job& job, const std::filesystem::path& copy, Transfer& transfer);
  bool IsAbandoned();
  void Pause();
  void Evict(uint64_t bytes_max);

  const std::filesystem::path folder_;
  const CopiesRoom room_;
  PieceSource& source_;
  const Done done_;
  const std::chrono::milliseconds patience_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;  // under mutex_, as is all below; the first is at work
  std::map<gang::AttemptId, std::string> uses_;  // which copy, by its folder's name
  bool abandoned_ = false;                       // what is at work
  bool untidy_ = false;                          // a copy has been released
  bool is_short_ = false;                        // the disk
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::agent
