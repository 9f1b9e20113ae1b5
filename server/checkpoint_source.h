#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/checkpoint_storage.h"
#include "server/conductor/conductor.h"
#include "server/http/backend/backend.h"
#include "server/rpc/executor_service.h"
#include "server/storage/stored_copies.h"
#include "server/store/reader.h"

namespace attune::server {

// Reads the files of checkpoints. It tries four places in this order: the executor's data folder,
// if this server can see it (Hello.folder); the server's storage; an executor that can see the data
// folder; the object store of the sweep. Any thread.
class CheckpointSource {
 public:
  // All arguments must outlive the object. `storage` may be null.
  CheckpointSource(Conductor& conductor, ExecutorService& executors, Reader& reader,
                   const CheckpointStorage* storage, StoredCopies& copies)
      : conductor_(conductor),
        executors_(executors),
        reader_(reader),
        storage_(storage),
        copies_(copies) {}

  // See Backend::ReadCheckpoint.
  Result<Backend::CheckpointPiece> Read(const CheckpointId& id, const std::string& file,
                                        uint64_t offset, uint32_t limit_bytes);

 private:
  Result<Backend::CheckpointPiece> ReadStored(const CheckpointId& id, const KeptRow& row,
                                              const std::string& path, const std::string& file,
                                              uint64_t offset, uint32_t limit_bytes);

  Conductor& conductor_;
  ExecutorService& executors_;
  Reader& reader_;
  const CheckpointStorage* const storage_;
  StoredCopies& copies_;
};

}  // namespace attune::server
