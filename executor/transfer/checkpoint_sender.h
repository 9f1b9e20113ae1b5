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

inline constexpr int kSenders = 2;               // one reads while the other one's piece travels
inline constexpr size_t kPiecesQueuedMax = 256;  // more than the server asks for at once

// The checkpoint's folder of that name among those of a trial; nullopt: it is none's name.
std::optional<std::filesystem::path> FolderOf(const gang::Folders& folders, uint64_t sweep,
                                              uint32_t trial, const std::string& name);

// Reads what the server asks for of checkpoints and brings it there, on threads of its own: disks
// and networks take their time. In memory are as many pieces as there are threads.
//
// Nothing outside of the data folder's checkpoints is read, whatever the server asks for. What
// cannot be brought is dropped: who waits for it asks again.
class CheckpointSender {
 public:
  CheckpointSender(gang::Folders folders, ServerStub stub, std::string token);
  ~CheckpointSender();  // ends what is under way

  // Any thread. Where too much is queued, the oldest is dropped: it is the likeliest to have nobody
  // waiting for it any more.
  void Send(v1::CheckpointRequest request);

 private:
  void Run();
  void Bring(const v1::CheckpointPiece& piece);

  const gang::Folders folders_;
  const ServerStub stub_;
  const std::string token_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::CheckpointRequest> queue_;  // under mutex_, as is all below
  std::set<grpc::ClientContext*> calls_;
  bool stop_ = false;

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace attune::agent
