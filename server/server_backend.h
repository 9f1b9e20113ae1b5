#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/checkpoint_source.h"
#include "server/conductor/conductor.h"
#include "server/folder/secrets.h"
#include "server/http/backend/backend.h"
#include "server/rpc/executor_service.h"
#include "server/storage/stored_copies.h"
#include "server/storage/stores.h"
#include "server/store/reader.h"

namespace attune::server {

// Answers the requests of HTTP. All arguments outlive the object. `storage` may be null.
// `default_store` is the address of an object store; empty: none.
class ServerBackend final : public Backend {
 public:
  ServerBackend(Conductor& conductor, ExecutorService& executors, Reader& reader,
                const Secrets& secrets, const CheckpointStorage* storage, Stores& stores,
                StoredCopies& copies, std::string default_store)
      : conductor_(conductor),
        executors_(executors),
        reader_(reader),
        secrets_(secrets),
        storage_(storage),
        stores_(stores),
        default_store_(std::move(default_store)),
        checkpoints_(conductor, executors, reader, storage, copies) {}

  CheckpointSource& checkpoints() { return checkpoints_; }

  using Backend::Execute;
  std::vector<Answer> Execute(std::vector<Command> commands, const std::string& actor,
                              const Callback& after) override {
    return conductor_.Execute(std::move(commands), actor, after);
  }
  void QueryState(const std::function<void(const Brain&)>& look) override {
    conductor_.Query(look);
  }
  std::vector<ExecutorStatus> Executors() override;
  Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                           uint32_t limit_bytes) override;
  Result<CheckpointPiece> ReadCheckpoint(const CheckpointId& checkpoint, const std::string& file,
                                         uint64_t offset, uint32_t limit_bytes) override {
    return checkpoints_.Read(checkpoint, file, offset, limit_bytes);
  }
  Result<std::vector<std::string>> UndefinedSecrets(const std::vector<std::string>& names) override;
  bool IsStored(const CheckpointId& checkpoint, const std::string& digest) override {
    return storage_ != nullptr && storage_->Has(checkpoint, digest);
  }
  std::string UrlOfCopy(const CheckpointId& checkpoint, const std::string& digest,
                        const std::string& address) override;
  std::string DefaultStore() override { return default_store_; }
  Status CheckStore(const std::string& address) override;
  Status Started() override { return conductor_.Started(); }
  Status Ready() override { return conductor_.Ready(); }
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) override {
    return conductor_.WaitForEvents(seq, timeout_ms);
  }

 private:
  Conductor& conductor_;
  ExecutorService& executors_;
  Reader& reader_;
  const Secrets& secrets_;
  const CheckpointStorage* const storage_;
  Stores& stores_;
  const std::string default_store_;
  CheckpointSource checkpoints_;
};

}  // namespace attune::server
