#pragma once

#include <functional>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/base/random.h"
#include "simulator/timeline.h"

namespace attune::sim {

using StreamId = size_t;

// One end of all connections: the server's, or an executor's.
class ServerEnd {
 public:
  virtual ~ServerEnd() = default;
  virtual void OnMessage(StreamId stream, v1::FromExecutor message) = 0;
  virtual void OnClosed(StreamId stream) = 0;
};
class ExecutorEnd {
 public:
  virtual ~ExecutorEnd() = default;
  virtual void OnMessage(StreamId stream, v1::ToExecutor message) = 0;
  virtual void OnClosed(StreamId stream) = 0;
};

// Connections with an order and without a promise: a message is late by a random time, and when a
// connection breaks, what was on its way to the executor is lost, and of what was on its way to
// the server a beginning still arrives, perhaps after a later connection was made. A Hello may lie
// unread for long. Either end learns of the break some time later, or at once if it closed the
// connection itself.
class Network {
 public:
  Network(simulate::Timeline& timeline, RandomStream& random, ServerEnd& server)
      : timeline_(timeline), random_(random), server_(server) {}

  void SetDelay(int64_t most_us) { delay_us_ = most_us; }
  // This share of all Hellos is read late; `told` whose, and until when the others behind it wait.
  using SlowHello = std::function<void(const std::string& executor, Time until)>;
  void SetSlowHellos(double share, SlowHello told) {
    slow_hellos_ = share;
    slow_hello_ = std::move(told);
  }

  StreamId Connect(ExecutorEnd& executor);
  void Send(StreamId stream, v1::FromExecutor message);
  void Send(StreamId stream, v1::ToExecutor message);
  void Break(StreamId stream);
  void CloseByServer(StreamId stream);
  void CloseByExecutor(StreamId stream);
  void ForgetExecutor(StreamId stream) { streams_[stream].executor = nullptr; }  // its process died
  void ServerDied();  // every connection of the old process

 private:
  struct Stream {
    ExecutorEnd* executor = nullptr;  // null: hears nothing any more
    bool server_hears = true;
    bool broken = false;
    Time late_until;              // of messages to the server, once broken
    Time to_server, to_executor;  // when the last message arrives
  };

  Time Arrival(Time& last);
  void TellExecutor(StreamId stream, int64_t after_us);
  void TellServer(StreamId stream, int64_t after_us);

  simulate::Timeline& timeline_;
  RandomStream& random_;
  ServerEnd& server_;
  int64_t delay_us_ = 1000;
  double slow_hellos_ = 0;
  SlowHello slow_hello_;
  std::vector<Stream> streams_;
};

}  // namespace attune::sim
