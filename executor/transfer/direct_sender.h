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

// So many executors read checkpoints here at once; more are turned away, and go by the server.
inline constexpr size_t kDirectReadersMax = 16;

// Sends checkpoints to other executors that connect to it and know its key, each on a thread of its
// own. Nothing outside of the data folder's checkpoints is read, whatever they ask for.
//
// Whoever does not say who he is, does not take what he asked for, or asks for nothing more for
// a while, is let go.
class DirectSender {
 public:
  // Listens at an address of this host; where it is empty, or cannot be listened at, nowhere.
  DirectSender(gang::Folders folders, const std::string& address, DirectTimeouts timeouts = {});
  ~DirectSender();  // ends what is under way

  uint16_t port() const { return listener_.port; }  // 0: nowhere
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
  std::list<Reader> readers_;  // under mutex_, as is the next
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::agent
