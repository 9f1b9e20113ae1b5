#include "tests/sim/service/network.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace attune::sim {
namespace {

constexpr int64_t kNoticeUs = 3'000'000;  // at most, until an end learns that the other is gone

constexpr int64_t kSlowHelloUs = 60'000'000;  // at most, until a Hello that waits is read

}  // namespace

StreamId Network::Connect(ExecutorEnd& executor) {
  streams_.push_back({.executor = &executor});
  return streams_.size() - 1;
}

Time Network::Arrival(Time& last) {
  last = std::max(last, Time{timeline_.now().us + random_.Integer(0, delay_us_)});
  return last;
}

void Network::Send(StreamId id, v1::FromExecutor message) {
  if (streams_[id].broken) return;
  Time& last = streams_[id].to_server;
  if (message.has_hello() && random_.Uniform() < slow_hellos_) {
    last = Time{timeline_.now().us + random_.Integer(0, kSlowHelloUs)};
    slow_hello_(message.hello().name(), last);
  }
  const Time at = Arrival(last);
  timeline_.At(at, [this, id, message = std::move(message)]() mutable {
    const Stream& stream = streams_[id];
    if (!stream.server_hears || (stream.broken && timeline_.now() > stream.late_until)) return;
    server_.OnMessage(id, std::move(message));
  });
}

void Network::Send(StreamId id, v1::ToExecutor message) {
  if (streams_[id].broken) return;
  const Time at = Arrival(streams_[id].to_executor);
  timeline_.At(at, [this, id, message = std::move(message)]() mutable {
    const Stream& stream = streams_[id];
    if (stream.broken || stream.executor == nullptr) return;
    stream.executor->OnMessage(id, std::move(message));
  });
}

void Network::Break(StreamId id) {
  Stream& stream = streams_[id];
  if (stream.broken) return;
  stream.broken = true;
  stream.late_until = Time{timeline_.now().us + random_.Integer(0, 2 * delay_us_)};
  TellExecutor(id, random_.Integer(0, kNoticeUs));
  TellServer(id, random_.Integer(0, kNoticeUs));
}

// What the server sent before it closed still arrives.
void Network::CloseByServer(StreamId id) {
  Stream& stream = streams_[id];
  if (stream.broken) return;
  stream.server_hears = false;
  timeline_.At(stream.to_executor, [this, id] {
    if (streams_[id].broken) return;
    streams_[id].broken = true;
    TellExecutor(id, 0);
  });
  TellServer(id, 0);
}

void Network::CloseByExecutor(StreamId id) {
  Stream& stream = streams_[id];
  stream.executor = nullptr;
  if (stream.broken) return;
  stream.broken = true;
  stream.late_until = stream.to_server;
  TellServer(id, std::max<int64_t>(0, stream.to_server.us - timeline_.now().us));
}

void Network::ServerDied() {
  for (StreamId id = 0; id < streams_.size(); ++id) {
    Stream& stream = streams_[id];
    stream.server_hears = false;
    if (stream.broken) continue;
    stream.broken = true;
    TellExecutor(id, random_.Integer(0, kNoticeUs));
  }
}

void Network::TellExecutor(StreamId id, int64_t after_us) {
  timeline_.After(after_us, [this, id] {
    ExecutorEnd* executor = std::exchange(streams_[id].executor, nullptr);
    if (executor != nullptr) executor->OnClosed(id);
  });
}

void Network::TellServer(StreamId id, int64_t after_us) {
  timeline_.After(after_us, [this, id] { server_.OnClosed(id); });
}

}  // namespace attune::sim
