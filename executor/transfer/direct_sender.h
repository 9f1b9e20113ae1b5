#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "executor/gang/folders.h"
#include "executor/transfer/direct_wire.h"
#include "system/unique_fd.h"

namespace attune::agent {

// Maximum number of executors that read checkpoints from this one at the same time; others are
// refused and use the server.
inline constexpr size_t kDirectReadersMax = 16;

// Sends checkpoints to other executors that connect and know its key, each on its own thread. It
// never reads files outside of the data folder's checkpoints.
//
// It disconnects an executor that does not authenticate, does not receive the data it requested, or
// is idle for too long.
class DirectSender {
 public:
  // Listens at an address of this host. If `address` is empty or listening fails, it does nothing.
  DirectSender(gang::Folders folders, const std::string& address, DirectTimeouts timeouts = {});
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

  const gang::Folders folders_;
  const DirectTimeouts timeouts_;
  const std::string key_ = RandomKey();
  Listener listener_;

  std::mutex mutex_;
  std::list<Reader> readers_;  // this and the next member: under mutex_
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
