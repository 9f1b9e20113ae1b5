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
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

// What an epoll event is about; the listeners follow, and then connections.
constexpr uint64_t kWake = 0;
constexpr int kEventsAtOnce = 256;
constexpr int kAcceptAtOnce = 64;
constexpr size_t kReceiveBytes = 64 << 10;
constexpr std::chrono::milliseconds kTick{250};        // how exact deadlines are
constexpr int kTicksPerCheck = 2;                      // of the tokens of event streams
constexpr std::chrono::milliseconds kLinger{1'000};    // for a client to read its last answer
constexpr std::chrono::milliseconds kStopTime{1'000};  // for clients to take what is written
constexpr int kRetryAfterSeconds = 1;
constexpr int kHeavyNice = 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

bool AsksForHealth(const Request& head) {
  const std::string_view path = std::string_view(head.path).substr(0, head.path.find('?'));
  return path == "/livez" || path == "/readyz";
}

Written RefuseAtStop() {
  return Exchange::Refuse(Problem(rest::ProblemType::kUnavailable, "the server is stopping"), true);
}

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
            Tell({stream, over ? std::string(kLastChunk) : Chunk(*text), over});
          },
          [this] {
            {
              const std::lock_guard lock(mutex_);
              happened_ = true;
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

void Connections::Tell(Message message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  Wake();
}

Connections::Clock::time_point Connections::In(std::chrono::milliseconds time, size_t bytes) const {
  return Clock::now() + time +
         std::chrono::milliseconds(1000 * bytes / limits_.slowest_bytes_per_second);
}

// ---- The thread ----------------------------------------------------------------------------

void Connections::Run() {
  std::array<epoll_event, kEventsAtOnce> events{};
  std::unique_lock turn(turn_);
  Tick();
  auto tick = Clock::now() + kTick;
  while (!end_ || !connections_.empty()) {
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
        Serve(event.data.u64, event.events);
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
  if (!accepting_ && !end_) Listen();
  const auto now = Clock::now();
  for (auto place = connections_.begin(); place != connections_.end();) {
    const auto next = std::next(place);
    if (end_ && *end_ <= now && place->second.stage != Stage::kAnswering) {
      Close(place);
    } else if (place->second.deadline && *place->second.deadline <= now) {
      Expire(place);
    }
    place = next;
  }
  if (++ticks_ % kTicksPerCheck == 0) EndRevokedStreams();
}

void Connections::EndRevokedStreams() {
  for (auto place = connections_.begin(); place != connections_.end();) {
    const auto next = std::next(place);
    Connection& connection = place->second;
    if (connection.follows && !parts_.shows_token(connection.framing.head())) {
      connection.close = true;
      if (connection.stage == Stage::kFollowing)
        Continue(place, {.bytes = std::string(kLastChunk), .over = true});
    }
    place = next;
  }
}

void Connections::Expire(Place place) {
  Connection& connection = place->second;
  switch (connection.stage) {
    case Stage::kReading:
      if (connection.in.empty()) return Close(place);
      return Refuse(place, rest::ProblemType::kRequestTimeout,
                    "the request did not come to its end in time", true);
    case Stage::kLater:
      return Hand(place);
    default:
      return Close(place);
  }
}

void Connections::HandleMessages() {
  std::vector<Message> messages;
  bool happened = false;
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(messages_);
    happened = std::exchange(happened_, false);
    stopping = stopping_;
  }
  for (Message& message : messages) {
    const auto place = connections_.find(message.connection);
    if (place != connections_.end()) Continue(place, message);
  }
  if (happened) {
    for (auto place = connections_.begin(); place != connections_.end();) {
      const auto next = std::next(place);
      place->second.asked_twice = false;
      if (place->second.stage == Stage::kLater) Hand(place);
      place = next;
    }
  }
  if (stopping && !end_) BeginStop();
}

void Connections::BeginStop() {
  end_ = Clock::now() + kStopTime;
  StopListening();
  for (Listener& listener : listeners_) listener.socket.reset();
  for (auto place = connections_.begin(); place != connections_.end();) {
    const auto next = std::next(place);
    Connection& connection = place->second;
    connection.close = true;
    if (connection.heavy) connection.heavy->request_stop();
    if (connection.stage == Stage::kReading || connection.stage == Stage::kClosing) {
      Close(place);
    } else if (connection.stage == Stage::kFollowing) {
      connection.out = kLastChunk;
      connection.written = 0;
      Write(place);
    } else if (connection.stage == Stage::kLater) {
      Begin(place, RefuseAtStop());
    }
    place = next;
  }
}

// ---- Connections come ----------------------------------------------------------------------

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
      // No more descriptors: the next tick looks again, and until then clients wait their turn.
      return StopListening();
    }
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const Place place = connections_.emplace(++last_id_, Connection{}).first;
    Connection& connection = place->second;
    connection.socket =
        Socket(socket, listener.certificate ? listener.certificate->Accept(socket) : nullptr);
    connection.deadline = In(limits_.head);
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = last_id_}};
    const bool in_clear = listener.certificate && !connection.socket.is_secure();  // no memory
    if (in_clear || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) {
      Close(place);
    } else if (const auto closed = unauthenticated_.Add(last_id_)) {
      Close(connections_.find(*closed));
    }
  }
}

void Connections::Close(Place place) {
  Connection& connection = place->second;
  if (connection.follows) publisher_.Leave(place->first);
  if (connection.heavy) connection.heavy->request_stop();
  if (connection.authenticated) --authenticated_;
  unauthenticated_.Remove(place->first);
  unread_body_bytes_ -= connection.body_bytes;
  connections_.erase(place);
}

// One event, and then silence until it is armed again.
void Connections::Arm(Place place, uint32_t events) {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.u64 = place->first}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, place->second.socket.descriptor(), &event);
}

void Connections::Serve(Id id, uint32_t) {
  const auto place = connections_.find(id);
  if (place == connections_.end()) return;
  switch (place->second.stage) {
    case Stage::kReading:
      return Receive(place);
    case Stage::kWriting:
      return Write(place);
    case Stage::kFollowing:
    case Stage::kClosing:
      return Drain(place);
    case Stage::kAnswering:
      if (place->second.heavy) Close(place);  // the client has left
      return;
    case Stage::kLater:
      return;
  }
}

// ---- Requests ------------------------------------------------------------------------------

void Connections::Receive(Place place) {
  Connection& connection = place->second;
  const ssize_t count = connection.socket.Receive(buffer_.data(), buffer_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Wait(place);
  if (count <= 0) return Close(place);  // with what it has not said to the end
  if (connection.in.empty()) connection.deadline = In(limits_.head);
  connection.in.append(buffer_.data(), static_cast<size_t>(count));
  Process(place);
}

void Connections::Process(Place place) {
  Connection& connection = place->second;
  switch (connection.framing.Read(connection.in)) {
    case Framing::State::kHead:
      return Wait(place);
    case Framing::State::kBad: {
      const Framing::Fault fault = connection.framing.fault();
      return Refuse(place, fault.type, fault.detail, true);
    }
    case Framing::State::kWhole:
      if (!Authenticate(place)) return;
      return Dispatch(place, connection.framing.size());
    case Framing::State::kBody:
      break;
  }
  if (connection.admitted) return Wait(place);
  if (!Authenticate(place)) return;
  if (connection.framing.length() > kMaxBodyBytes || !parts_.admits(connection.framing.head())) {
    connection.close = true;
    return Dispatch(place, connection.framing.head_bytes());
  }
  const bool chunked = connection.framing.chunked();
  const size_t body = chunked ? kMaxChunkedBytes : connection.framing.length();
  if (unread_body_bytes_ + body > limits_.unread_body_bytes)
    return Refuse(place, rest::ProblemType::kConnectionLimit,
                  "too many requests with long bodies at once: send it again", true);
  connection.admitted = true;
  connection.body_bytes = body;
  unread_body_bytes_ += body;
  connection.deadline = In(limits_.body, chunked ? kMaxBodyBytes : body);
  if (connection.framing.expects_continue() &&
      connection.socket.Send(kContinue.data(), kContinue.size()) !=
          static_cast<ssize_t>(kContinue.size()))
    return Close(place);  // who takes not even that takes no answer
  Wait(place);
}

// Takes the connection out of the pool if its request shows a valid token. Returns false if the
// request has been refused because there are too many connections.
bool Connections::Authenticate(Place place) {
  Connection& connection = place->second;
  if (connection.authenticated || !parts_.shows_token(connection.framing.head())) return true;
  if (authenticated_ >= limits_.connections && !AsksForHealth(connection.framing.head())) {
    Refuse(place, rest::ProblemType::kConnectionLimit,
           "there are already " + std::to_string(limits_.connections) + " connections", true);
    return false;
  }
  if (authenticated_ >= limits_.connections) return true;
  connection.authenticated = true;
  ++authenticated_;
  unauthenticated_.Remove(place->first);
  return true;
}

void Connections::Wait(Place place) {
  Arm(place, place->second.socket.wants_room() ? EPOLLOUT : EPOLLIN | EPOLLRDHUP);
}

// A whole request, or the head of one whose body is not wanted.
void Connections::Dispatch(Place place, size_t bytes) {
  Connection& connection = place->second;
  connection.request = std::make_shared<const std::string>(connection.in, 0, bytes);
  connection.in.erase(0, bytes);
  connection.patience = In(limits_.later);
  connection.asked_twice = false;
  connection.heavy.reset();
  Hand(place);
}

// To a worker, for the first time or again.
void Connections::Hand(Place place) {
  Connection& connection = place->second;
  const bool patient = Clock::now() < connection.patience;
  connection.stage = Stage::kAnswering;
  connection.deadline.reset();
  Handling handling{.patient = patient, .secure = connection.socket.is_secure()};
  if (connection.heavy) {
    handling.heavy = true;
    handling.left = connection.heavy->get_token();
    Arm(place, EPOLLRDHUP);
  }
  Lane& lane = connection.heavy                           ? heavy_
               : AsksForHealth(connection.framing.head()) ? health_
                                                          : workers_;
  const bool taken = lane.Submit([this, id = place->first, request = connection.request, handling] {
    Answered(id, handling.left.stop_requested() ? RefuseAtStop()
                                                : parts_.exchange->Answer(*request, handling));
  });
  if (taken) return;
  const size_t queued = connection.heavy ? limits_.heavy_queued : limits_.queued;
  Refuse(place, rest::ProblemType::kConnectionLimit,
         "there are already " + std::to_string(queued) + " requests waiting", true);
}

// ---- Answers -------------------------------------------------------------------------------

// The client has it without another thread being woken.
void Connections::Answered(Id id, Written written) {
  const std::lock_guard turn(turn_);
  const auto place = connections_.find(id);
  if (place == connections_.end()) return;
  Begin(place, std::move(written));
  if (end_) Wake();  // for the last one
}

void Connections::Refuse(Place place, rest::ProblemType type, std::string detail, bool close) {
  Response refusal = Problem(type, std::move(detail));
  if (refusal.status == 503) refusal.Set("Retry-After", std::to_string(kRetryAfterSeconds));
  Begin(place, Exchange::Refuse(refusal, close));
}

void Connections::Begin(Place place, Written written) {
  Connection& connection = place->second;
  if (written.heavy) {
    connection.heavy.emplace();
    if (end_) connection.heavy->request_stop();
    return Hand(place);
  }
  if (written.later && !end_) {
    // What has happened between the try and the watch is seen by another try.
    publisher_.Watch();
    if (!std::exchange(connection.asked_twice, true)) return Hand(place);
    connection.stage = Stage::kLater;
    connection.deadline = connection.patience;
    return;
  }
  unread_body_bytes_ -= std::exchange(connection.body_bytes, 0);
  connection.request.reset();
  connection.out = std::move(written.bytes);
  connection.written = 0;
  connection.close |= written.close || end_.has_value();
  if (written.goes) {
    connection.follows = std::move(written.goes);
    connection.close = end_.has_value();
    connection.out += connection.close ? std::string(kLastChunk) : Chunk(StreamGreeting());
  }
  connection.deadline = In(limits_.taking, connection.out.size());
  Write(place);
}

void Connections::Continue(Place place, const Message& message) {
  Connection& connection = place->second;
  if (connection.stage != Stage::kFollowing) return;  // it is being closed
  connection.close |= message.over;
  connection.out = message.bytes;
  connection.written = 0;
  connection.deadline = In(limits_.taking, connection.out.size());
  Write(place);
}

void Connections::Write(Place place) {
  Connection& connection = place->second;
  connection.stage = Stage::kWriting;
  while (connection.written < connection.out.size()) {
    const ssize_t count = connection.socket.Send(connection.out.data() + connection.written,
                                                 connection.out.size() - connection.written);
    if (count > 0) {
      connection.written += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      return Arm(place, EPOLLOUT);
    } else if (errno != EINTR) {
      return Close(place);
    }
  }
  connection.out = {};
  Finished(place);
}

void Connections::Finished(Place place) {
  Connection& connection = place->second;
  connection.deadline.reset();
  if (connection.close) return Linger(place);
  if (connection.follows) {
    connection.stage = Stage::kFollowing;
    if (std::exchange(connection.followed, true)) {
      publisher_.Next(place->first);
    } else {
      publisher_.Follow(place->first, connection.follows->after, connection.follows->sweep);
    }
    return Arm(place, EPOLLIN | EPOLLRDHUP);
  }
  connection.stage = Stage::kReading;
  connection.framing = {};
  connection.admitted = false;
  if (connection.in.empty()) {
    connection.in.shrink_to_fit();
    connection.deadline = In(limits_.idle);
    return Wait(place);
  }
  connection.deadline = In(limits_.head);
  Process(place);  // the next of a pipeline
}

// A client that still sends would lose the answer to the reset of an early close.
void Connections::Linger(Place place) {
  Connection& connection = place->second;
  if (end_) return Close(place);
  connection.socket.EndSending();
  connection.stage = Stage::kClosing;
  connection.deadline = Clock::now() + kLinger;
  connection.in = {};
  Arm(place, EPOLLIN);
}

// Of what comes on a stream, or after the last answer, only its end matters.
void Connections::Drain(Place place) {
  const ssize_t count = place->second.socket.Receive(buffer_.data(), buffer_.size());
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return Close(place);
  Arm(place, place->second.socket.wants_room() ? EPOLLOUT : EPOLLIN);
}

}  // namespace attune::server
