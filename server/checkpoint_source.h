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

// Where a checkpoint's files can be read: in the folder itself where the server sees it, the same
// one by its word (Hello.folder), in the server's storage, or else by way of an executor that sees
// it. Any thread.
class CheckpointSource {
 public:
  // All outlive the object; `storage` is null where there is none.
  CheckpointSource(Conductor& conductor, ExecutorService& executors, Reader& reader,
                   const CheckpointStorage* storage)
      : conductor_(conductor), executors_(executors), reader_(reader), storage_(storage) {}

  // As Backend::ReadCheckpoint.
  Result<Backend::CheckpointPiece> Read(const CheckpointId& id, const std::string& file,
                                        uint64_t offset, uint32_t limit_bytes);

 private:
  Conductor& conductor_;
  ExecutorService& executors_;
  Reader& reader_;
  const CheckpointStorage* const storage_;
};

}  // namespace attune::server
