#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "attune/v1/executor.grpc.pb.h"
#include "executor/gang/folders.h"
#include "executor/transfer/server_stub.h"

namespace attune::agent {

inline constexpr int kSenders = 2;               // one reads while the other one sends
inline constexpr size_t kPiecesQueuedMax = 256;  // more than the server requests at once

// The path of a checkpoint's folder of this name in a trial; nullopt: the name is not valid.
std::optional<std::filesystem::path> CheckpointFolderPath(const gang::Folders& folders,
                                                          uint64_t sweep, uint32_t trial,
                                                          const std::string& name);

// Reads the pieces of checkpoints that the server requests and sends them to it, on its own
// threads, because disks and networks may be slow. Each thread holds one piece in memory.
//
// It never reads files outside of the data folder's checkpoints. A piece that cannot be sent is
// dropped, because the receiver requests it again.
class CheckpointSender {
 public:
  CheckpointSender(gang::Folders folders, ServerStub stub, std::string token);
  ~CheckpointSender();  // cancels the current pieces

  // Thread-safe. If the queue is full, drops the oldest request, because it is the most likely one
  // that nobody waits for any more.
  void Send(v1::CheckpointRequest request);

 private:
  void Run();
  void SendPiece(const v1::CheckpointPiece& piece);

  const gang::Folders folders_;
  const ServerStub stub_;
  const std::string token_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::CheckpointRequest> queue_;  // this and the members below: under mutex_
  std::set<grpc::ClientContext*> calls_;
  bool stop_ = false;

  std::vector<std::thread> threads_;  // declared last: they use all members above
};

}  // namespace attune::agent
