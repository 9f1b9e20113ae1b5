#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "server/conductor/submissions.h"
#include "server/folder/code_storage.h"
#include "server/store/reader.h"

namespace attune::server {

// Deletes snapshots of code that no sweep uses: when a sweep is deleted, at the start, and once an
// hour. Works on its own thread.
class CodeKeeper final : public Listener {
 public:
  // All arguments must outlive the object.
  CodeKeeper(CodeStorage& storage, Reader& reader);
  ~CodeKeeper() override;

  void OnStarted(const Brain& brain) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  void Wake();
  void Run();

  CodeStorage& storage_;
  Reader& reader_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool due_ = false;  // under mutex_, like the next member
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::server
