#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "server/conductor/submissions.h"
#include "server/store/thinned/curve_table.h"

namespace attune::server {

// Keeps the table of thinned curves up to date with the log, on its own thread. New events wake it;
// it waits a moment to collect more. If the file cannot be written, for example because the disk is
// full, it tries again later. Nothing else of the server depends on it: requests for thinned curves
// get what the file has.
class CurveKeeper final : public Listener {
 public:
  // `database` is the path of the database. It must exist when OnStarted is called.
  explicit CurveKeeper(std::string database);
  ~CurveKeeper() override;

  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event>, const Brain&) override {}

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  void WaitForEvents(std::unique_lock<std::mutex>& lock);
  Status Follow();
  Status Open();
  Status CatchUp();
  Status Write(bool built);
  void Fail(const Error& error);
  bool IsStopping();
  EventSeq Durable();

  const std::string database_;

  std::mutex mutex_;
  std::condition_variable changed_;  // new events, or stop_
  std::condition_variable stopped_;  // stop_ only, so that events do not interrupt a delay
  // Under mutex_:
  std::optional<LogIdentity> identity_;  // the log's identity at the start; nullopt: not started
  EventSeq started_;                     // the last event at the start
  EventSeq durable_;                     // the last durable event
  bool stop_ = false;

  // Used only by the thread:
  std::unique_ptr<CurveTable> table_;    // null: not open
  std::optional<LogIdentity> followed_;  // the identity when it last wrote; nullopt: it has not yet
  Clock::time_point next_write_;         // not before
  std::chrono::seconds retry_{0};  // to wait after a failure; 0: the last attempt was successful

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::server
