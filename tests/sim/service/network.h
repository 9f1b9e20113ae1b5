#pragma once

#include <functional>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/base/random.h"
#include "simulator/timeline.h"

namespace attune::sim {

using StreamId = size_t;

// The server's end of all connections.
class ServerEnd {
 public:
  virtual ~ServerEnd() = default;
  virtual void OnMessage(StreamId stream, v1::FromExecutor message) = 0;
  virtual void OnClosed(StreamId stream) = 0;
};
// An executor's end of its connections.
class ExecutorEnd {
 public:
  virtual ~ExecutorEnd() = default;
  virtual void OnMessage(StreamId stream, v1::ToExecutor message) = 0;
  virtual void OnClosed(StreamId stream) = 0;
};

// Connections that keep the order of messages but may lose them.
//
// - Each message has a random delay. The server may read a Hello very late.
// - When a connection breaks, all messages on their way to the executor are lost. Some of the
// messages
//   to the server still arrive, in order, perhaps after a newer connection was made.
// - An end learns of the break after some time, or at once if it closed the connection.
class Network {
 public:
  Network(simulate::Timeline& timeline, RandomStream& random, ServerEnd& server)
      : timeline_(timeline), random_(random), server_(server) {}

  void SetMaxDelay(int64_t max_us) { max_delay_us_ = max_us; }
  // The server reads this share of all Hellos late. Calls `on_slow_hello` with the executor and the
  // time at which its messages arrive.
  using SlowHello = std::function<void(const std::string& executor, Time until)>;
  void SetSlowHellos(double share, SlowHello on_slow_hello) {
    slow_hellos_ = share;
    slow_hello_ = std::move(on_slow_hello);
  }

  StreamId Connect(ExecutorEnd& executor);
  void Send(StreamId stream, v1::FromExecutor message);
  void Send(StreamId stream, v1::ToExecutor message);
  void Break(StreamId stream);
  void CloseByServer(StreamId stream);
  void CloseByExecutor(StreamId stream);
  void ForgetExecutor(StreamId stream) {
    streams_[stream].executor = nullptr;
  }                 // its process crashed
  void BreakAll();  // breaks every connection of a crashed server process

 private:
  struct Stream {
    ExecutorEnd* executor = nullptr;  // null: gets no more messages
    bool server_receives = true;
    bool broken = false;
    Time late_until;              // after a break, later messages to the server are lost
    Time to_server, to_executor;  // arrival of the last message
  };

  Time ArrivalTime(Time& last);
  void NotifyExecutor(StreamId stream, int64_t after_us);
  void NotifyServer(StreamId stream, int64_t after_us);

  simulate::Timeline& timeline_;
  RandomStream& random_;
  ServerEnd& server_;
  int64_t max_delay_us_ = 1000;
  double slow_hellos_ = 0;
  SlowHello slow_hello_;
  std::vector<Stream> streams_;
};

}  // namespace attune::sim
