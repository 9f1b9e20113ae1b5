#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/checkpoint_storage.h"
#include "server/conductor/conductor.h"
#include "server/http/backend/backend.h"
#include "server/rpc/executor_service.h"
#include "server/store/reader.h"

namespace attune::server {

// Reads the files of checkpoints. It tries three places in this order: the executor's data folder,
// if this server can see it (Hello.folder); the server's storage; an executor that can see the data
// folder. Any thread.
class CheckpointSource {
 public:
  // All arguments must outlive the object. `storage` may be null.
  CheckpointSource(Conductor& conductor, ExecutorService& executors, Reader& reader,
                   const CheckpointStorage* storage)
      : conductor_(conductor), executors_(executors), reader_(reader), storage_(storage) {}

  // See Backend::ReadCheckpoint.
  Result<Backend::CheckpointPiece> Read(const CheckpointId& id, const std::string& file,
                                        uint64_t offset, uint32_t limit_bytes);

 private:
  Conductor& conductor_;
  ExecutorService& executors_;
  Reader& reader_;
  const CheckpointStorage* const storage_;
};

}  // namespace attune::server
