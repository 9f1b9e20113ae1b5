#include "server/http/transport/connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace attune::server {
namespace {

// The values of epoll events: this, then the listeners, then the connections.
constexpr uint64_t kWake = 0;
constexpr int kEventsAtOnce = 256;
constexpr int kAcceptAtOnce = 64;
constexpr size_t kReceiveBytes = 64 << 10;
constexpr std::chrono::milliseconds kTick{250};  // resolution of deadlines
constexpr int kTicksPerCheck = 2;                // ticks between checks of the streams' tokens
constexpr std::chrono::milliseconds kStopTime{1'000};  // time for clients to take what is written
constexpr int kHeavyNice = 10;

}  // namespace

Connections::Connections(Parts parts, std::vector<Listener> listeners)
    : parts_(std::move(parts)),
      limits_(parts_.limits),
      listeners_(std::move(listeners)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      unauthenticated_(limits_.unauthenticated),
      last_id_(kWake + listeners_.size()),
      buffer_(kReceiveBytes, '\0'),
      publisher_(
          *parts_.feed,
          [this](Id stream, std::optional<std::string> text) {
            const bool over = !text;
            PostMessage({stream, over ? std::string(kLastChunk) : Chunk(*text), over});
          },
          [this] {
            {
              const std::lock_guard lock(mutex_);
              event_happened_ = true;
            }
            Wake();
          }),
      health_(1, limits_.connections + limits_.unauthenticated),
      workers_(limits_.workers, limits_.queued),
      heavy_(limits_.heavy_workers, limits_.heavy_queued, kHeavyNice) {
  ATTUNE_CHECK(epoll_ >= 0 && wake_ >= 0);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  ATTUNE_CHECK(::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0);
  thread_ = std::thread([this] { Run(); });
}

Connections::~Connections() {
  Stop();
  ::close(wake_);
  ::close(epoll_);
}

void Connections::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
  publisher_.Stop();
  workers_.Stop();
  heavy_.Stop();
  health_.Stop();
}

void Connections::Wake() { ATTUNE_CHECK(::eventfd_write(wake_, 1) == 0); }

void Connections::PostMessage(Message message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  Wake();
}

Connections::Clock::time_point Connections::DeadlineAfter(std::chrono::milliseconds time,
                                                          size_t bytes) const {
  return Clock::now() + time +
         std::chrono::milliseconds(1000 * bytes / limits_.slowest_bytes_per_second);
}

// ---- The thread ----------------------------------------------------------------------------

void Connections::Run() {
  std::array<epoll_event, kEventsAtOnce> events{};
  std::unique_lock turn(connections_mutex_);
  Tick();
  auto tick = Clock::now() + kTick;
  while (!stop_deadline_ || !connections_.empty()) {
    turn.unlock();
    const int count =
        ::epoll_wait(epoll_, events.data(), kEventsAtOnce, static_cast<int>(kTick.count()));
    turn.lock();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWake) {
        eventfd_t value = 0;
        ::eventfd_read(wake_, &value);
      } else if (event.data.u64 <= kWake + listeners_.size()) {
        Accept(listeners_[event.data.u64 - kWake - 1]);
      } else {
        OnEvent(event.data.u64, event.events);
      }
    }
    HandleMessages();
    if (Clock::now() >= tick) {
      Tick();
      tick = Clock::now() + kTick;
    }
  }
}

void Connections::Tick() {
  if (!accepting_ && !stop_deadline_) Listen();
  const auto now = Clock::now();
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    const auto next = std::next(entry);
    if (stop_deadline_ && *stop_deadline_ <= now && entry->second.stage != Stage::kAnswering) {
      Close(entry);
    } else if (entry->second.deadline && *entry->second.deadline <= now) {
      OnDeadline(entry);
    }
    entry = next;
  }
  if (++ticks_ % kTicksPerCheck == 0) EndRevokedStreams();
}

void Connections::EndRevokedStreams() {
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    const auto next = std::next(entry);
    Connection& connection = entry->second;
    if (connection.follow && !parts_.shows_token(connection.framing.head())) {
      connection.close = true;
      if (connection.stage == Stage::kFollowing)
        ContinueStream(entry, {.bytes = std::string(kLastChunk), .over = true});
    }
    entry = next;
  }
}

void Connections::OnDeadline(Entry entry) {
  Connection& connection = entry->second;
  switch (connection.stage) {
    case Stage::kReading:
      if (connection.input.empty()) return Close(entry);
      return Refuse(entry, rest::ProblemType::kRequestTimeout,
                    "the request did not arrive completely in time", true);
    case Stage::kPostponed:
      return SubmitToWorker(entry);
    default:
      return Close(entry);
  }
}

void Connections::HandleMessages() {
  std::vector<Message> messages;
  bool happened = false;
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(messages_);
    happened = std::exchange(event_happened_, false);
    stopping = stopping_;
  }
  for (Message& message : messages) {
    const auto entry = connections_.find(message.connection);
    if (entry != connections_.end()) ContinueStream(entry, message);
  }
  if (happened) {
    for (auto entry = connections_.begin(); entry != connections_.end();) {
      const auto next = std::next(entry);
      entry->second.tried_twice = false;
      if (entry->second.stage == Stage::kPostponed) SubmitToWorker(entry);
      entry = next;
    }
  }
  if (stopping && !stop_deadline_) BeginStop();
}

void Connections::BeginStop() {
  stop_deadline_ = Clock::now() + kStopTime;
  StopListening();
  for (Listener& listener : listeners_) listener.socket.reset();
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    const auto next = std::next(entry);
    Connection& connection = entry->second;
    connection.close = true;
    if (connection.heavy) connection.heavy->request_stop();
    if (connection.stage == Stage::kReading || connection.stage == Stage::kClosing) {
      Close(entry);
    } else if (connection.stage == Stage::kFollowing) {
      connection.output = kLastChunk;
      connection.written = 0;
      Write(entry);
    } else if (connection.stage == Stage::kPostponed) {
      BeginAnswer(entry, StopRefusal());
    }
    entry = next;
  }
}

// ---- New connections -----------------------------------------------------------------------

void Connections::Listen() {
  accepting_ = true;
  for (size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake + 1 + i}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listeners_[i].socket.get(), &event) != 0 &&
        errno != EEXIST)
      accepting_ = false;
  }
}

void Connections::StopListening() {
  accepting_ = false;
  for (const Listener& listener : listeners_)
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener.socket.get(), nullptr);
}

void Connections::Accept(const Listener& listener) {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    const int socket =
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      // No descriptors are left. The next tick tries again; until then clients wait.
      return StopListening();
    }
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const Entry entry = connections_.emplace(++last_id_, Connection{}).first;
    Connection& connection = entry->second;
    connection.socket =
        Socket(socket, listener.certificate ? listener.certificate->Accept(socket) : nullptr);
    connection.deadline = DeadlineAfter(limits_.head);
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = last_id_}};
    // TLS failed because memory is exhausted
    const bool in_clear = listener.certificate && !connection.socket.is_secure();
    if (in_clear || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) {
      Close(entry);
    } else if (const auto closed = unauthenticated_.Add(last_id_)) {
      Close(connections_.find(*closed));
    }
  }
}

void Connections::Close(Entry entry) {
  Connection& connection = entry->second;
  if (connection.follow) publisher_.RemoveStream(entry->first);
  if (connection.heavy) connection.heavy->request_stop();
  if (connection.authenticated) --authenticated_;
  unauthenticated_.Remove(entry->first);
  unread_body_bytes_ -= connection.body_bytes;
  connections_.erase(entry);
}

// Enables one event. No further event is reported until it is armed again.
void Connections::Arm(Entry entry, uint32_t events) {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.u64 = entry->first}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, entry->second.socket.descriptor(), &event);
}

void Connections::OnEvent(Id id, uint32_t) {
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  switch (entry->second.stage) {
    case Stage::kReading:
      return Receive(entry);
    case Stage::kWriting:
      return Write(entry);
    case Stage::kFollowing:
    case Stage::kClosing:
      return DiscardInput(entry);
    case Stage::kAnswering:
      if (entry->second.heavy) Close(entry);  // the client has disconnected
      return;
    case Stage::kPostponed:
      return;
  }
}

}  // namespace attune::server
