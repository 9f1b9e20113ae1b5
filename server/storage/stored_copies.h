#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "object_storage/stored_folder.h"
#include "server/storage/stores.h"

namespace attune::server {

// Reads files of copies in object stores. Keeps the folders open that were used last, because each
// has a running rclone that reads ahead. A thread closes those that are not used. Any thread.
class StoredCopies {
 public:
  // The most folders that stay open while nobody reads them, and for how long.
  static constexpr size_t kIdleMax = 4;
  static constexpr std::chrono::seconds kIdleTime{30};

  // `stores` must outlive the object.
  explicit StoredCopies(Stores& stores);
  ~StoredCopies();

  // A part of a file of a copy.
  struct Part {
    std::string address;  // of the store
    std::string path;     // of the copy, below the address
    std::string file;
    uint64_t offset = 0;
    uint32_t limit_bytes = 0;
  };
  // kNotFound: the copy exists, but has no such file. kConflict: there is no complete copy. Other
  // errors: those of Stores::Open() and StoredFolder.
  Result<checkpoints::Piece> Read(const Part& part);

  // Ends all calls of Read() early, and later ones at once.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  struct Folder {
    std::string address;
    std::string path;
    Stores::Store store;  // before `files`, which uses it
    object_storage::StoredFolder files;
    Clock::time_point used;
    // The piece that was read last, because a client may ask for less.
    std::string file;
    uint64_t offset = 0;
    checkpoints::Piece piece;
  };

  Result<Folder> Take(const Part& part);
  static Status ReadPiece(const Part& part, Folder& folder);
  void Return(Folder folder);
  void CloseIdle();

  Stores& stores_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Folder> idle_;  // the last used at the end; under mutex_

  std::thread closer_;  // last: it uses all of the above
};

}  // namespace attune::server
