#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "object_storage/process.h"
#include "object_storage/store.h"

namespace attune::object_storage {

// Reads the files below a path of a store, such as those of a checkpoint:
//
//   auto folder = StoredFolder::Open(store, path, stop);
//   source.read = [&](const std::string& file, uint64_t offset, std::string memory) {
//     return folder->Read(file, offset, std::move(memory));
//   };
//
// Consecutive pieces of a file come from one rclone, which reads ahead. One thread at a time uses
// an object. Nothing is verified; checkpoints::Download() does that.
class StoredFolder {
 public:
  // Lists the files. The store must outlive the object. `stop` also ends later calls of Read().
  // Errors: those of ObjectStore::List().
  static Result<StoredFolder> Open(const ObjectStore& store, std::string path,
                                   std::stop_token stop);

  const StoredFiles& files() const { return files_; }

  // Reads from the offset: up to checkpoints::kPieceBytesMax, or to the end of the file. `memory`
  // is the string of an earlier piece, which is reused. kNotFound: there is no such file, or it has
  // become shorter since Open(). Other errors: see ObjectStore.
  Result<checkpoints::Piece> Read(const std::string& file, uint64_t offset,
                                  std::string memory = {});

 private:
  struct Stream {
    std::string file;
    uint64_t offset = 0;  // of the next byte
    Process process;
  };

  StoredFolder(const ObjectStore& store, std::string path, StoredFiles files, std::stop_token stop);
  Result<size_t> ReadSome(const std::string& file, uint64_t offset, char* to, size_t bytes_max);

  const ObjectStore* store_;
  std::string path_;
  StoredFiles files_;
  std::stop_token stop_;
  std::optional<Stream> stream_;
};

}  // namespace attune::object_storage
