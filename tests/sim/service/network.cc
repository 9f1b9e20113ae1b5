#include "tests/sim/service/network.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace attune::sim {
namespace {

constexpr int64_t kMaxNoticeUs = 3'000'000;  // until an end learns of a break

constexpr int64_t kMaxSlowHelloUs = 60'000'000;  // until the server reads a slow Hello

}  // namespace

StreamId Network::Connect(ExecutorEnd& executor) {
  streams_.push_back({.executor = &executor});
  return streams_.size() - 1;
}

Time Network::ArrivalTime(Time& last) {
  last = std::max(last, Time{timeline_.now().us + random_.Integer(0, max_delay_us_)});
  return last;
}

void Network::Send(StreamId id, v1::FromExecutor message) {
  if (streams_[id].broken) return;
  Time& last = streams_[id].to_server;
  if (message.has_hello() && random_.Uniform() < slow_hellos_) {
    last = Time{timeline_.now().us + random_.Integer(0, kMaxSlowHelloUs)};
    slow_hello_(message.hello().name(), last);
  }
  const Time at = ArrivalTime(last);
  timeline_.ScheduleAt(at, [this, id, message = std::move(message)]() mutable {
    const Stream& stream = streams_[id];
    if (!stream.server_receives || (stream.broken && timeline_.now() > stream.late_until)) return;
    server_.OnMessage(id, std::move(message));
  });
}

void Network::Send(StreamId id, v1::ToExecutor message) {
  if (streams_[id].broken) return;
  const Time at = ArrivalTime(streams_[id].to_executor);
  timeline_.ScheduleAt(at, [this, id, message = std::move(message)]() mutable {
    const Stream& stream = streams_[id];
    if (stream.broken || stream.executor == nullptr) return;
    stream.executor->OnMessage(id, std::move(message));
  });
}

void Network::Break(StreamId id) {
  Stream& stream = streams_[id];
  if (stream.broken) return;
  stream.broken = true;
  stream.late_until = Time{timeline_.now().us + random_.Integer(0, 2 * max_delay_us_)};
  NotifyExecutor(id, random_.Integer(0, kMaxNoticeUs));
  NotifyServer(id, random_.Integer(0, kMaxNoticeUs));
}

// Messages that the server sent before the close still arrive.
void Network::CloseByServer(StreamId id) {
  Stream& stream = streams_[id];
  if (stream.broken) return;
  stream.server_receives = false;
  timeline_.ScheduleAt(stream.to_executor, [this, id] {
    if (streams_[id].broken) return;
    streams_[id].broken = true;
    NotifyExecutor(id, 0);
  });
  NotifyServer(id, 0);
}

void Network::CloseByExecutor(StreamId id) {
  Stream& stream = streams_[id];
  stream.executor = nullptr;
  if (stream.broken) return;
  stream.broken = true;
  stream.late_until = stream.to_server;
  NotifyServer(id, std::max<int64_t>(0, stream.to_server.us - timeline_.now().us));
}

void Network::BreakAll() {
  for (StreamId id = 0; id < streams_.size(); ++id) {
    Stream& stream = streams_[id];
    stream.server_receives = false;
    if (stream.broken) continue;
    stream.broken = true;
    NotifyExecutor(id, random_.Integer(0, kMaxNoticeUs));
  }
}

void Network::NotifyExecutor(StreamId id, int64_t after_us) {
  timeline_.ScheduleAfter(after_us, [this, id] {
    ExecutorEnd* executor = std::exchange(streams_[id].executor, nullptr);
    if (executor != nullptr) executor->OnClosed(id);
  });
}

void Network::NotifyServer(StreamId id, int64_t after_us) {
  timeline_.ScheduleAfter(after_us, [this, id] { server_.OnClosed(id); });
}

}  // namespace attune::sim
