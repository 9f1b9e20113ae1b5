#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "attune/v1/executor.pb.h"
#include "executor/gang/folders.h"
#include "executor/transfer/direct_wire.h"
#include "system/unique_fd.h"

namespace attune::agent {

// Maximum number of executors that read checkpoints from this one at the same time; others are
// refused and use the server.
inline constexpr size_t kDirectReadersMax = 16;

// Sends checkpoints and snapshots of code to other executors that connect and know its key, each on
// its own thread. It reads no other files.
//
// It disconnects an executor that does not authenticate, does not receive the data it requested, or
// is idle for too long.
class DirectSender {
 public:
  // Listens at an address of this host. If `address` is empty or listening fails, it does nothing.
  // `code` is the folder with the copies of snapshots, which are named by their digests.
  DirectSender(gang::Folders folders, std::filesystem::path code, const std::string& address,
               DirectTimeouts timeouts = {});
  ~DirectSender();  // cancels current transfers

  uint16_t port() const { return listener_.port; }  // 0: not listening
  const std::string& key() const { return key_; }

 private:
  struct Reader {
    UniqueFd socket;
    bool done = false;
    std::thread thread;
  };

  void Accept();
  void Admit(UniqueFd socket);
  void Serve(int socket);
  bool Answer(int socket);
  bool AnswerPack(int socket, const v1::DirectRequest& request);

  const gang::Folders folders_;
  const std::filesystem::path code_;
  const DirectTimeouts timeouts_;
  const std::string key_ = RandomKey();
  Listener listener_;

  std::mutex mutex_;
  std::list<Reader> readers_;  // this and the next member: under mutex_
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
