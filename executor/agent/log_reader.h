#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "attune/v1/executor.pb.h"
#include "executor/gang/folders.h"
#include "system/mailbox.h"

namespace attune::agent {

// Reads pieces of ranks' logs on its own thread, so that a hanging disk does not block the agent's
// thread.
class LogReader {
 public:
  using Done = std::function<void(v1::LogChunk chunk)>;  // called on the reader's thread

  LogReader(gang::Folders folders, Done done);
  ~LogReader();  // waits for the current read

  // Thread-safe. Calls `done` for each request, in order.
  void Read(v1::LogRequest request);

 private:
  const gang::Folders folders_;
  const Done done_;
  Mailbox<std::function<void()>> mailbox_;
  bool stop_ = false;   // used only on the thread
  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
