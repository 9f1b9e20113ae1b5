#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "attune/v1/executor.pb.h"
#include "executor/gang/folders.h"
#include "system/mailbox.h"

namespace attune::agent {

// Reads pieces of ranks' logs on a thread of its own: a disk that hangs is not to hold up the
// agent's.
class LogReader {
 public:
  using Done = std::function<void(v1::LogChunk chunk)>;  // called on that thread

  LogReader(gang::Folders folders, Done done);
  ~LogReader();  // waits for what is being read

  // Any thread. `done` follows, in the order of the requests.
  void Read(v1::LogRequest request);

 private:
  const gang::Folders folders_;
  const Done done_;
  Mailbox<std::function<void()>> mailbox_;
  bool stop_ = false;   // of the thread's
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::agent
