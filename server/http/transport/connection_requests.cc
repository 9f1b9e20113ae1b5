// Moves a connection through its requests: reads them, gives them to workers and writes the
// answers.

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "server/http/transport/connections.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr std::chrono::milliseconds kLinger{1'000};  // time for a client to read its last answer
constexpr int kRetryAfterSeconds = 1;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

bool AsksForHealth(const Request& head) {
  const std::string_view path = std::string_view(head.path).substr(0, head.path.find('?'));
  return path == "/livez" || path == "/readyz";
}

}  // namespace

Written Connections::StopRefusal() {
  return Exchange::Refuse(Problem(rest::ProblemType::kUnavailable, "the server is stopping"), true);
}

// ---- Requests ------------------------------------------------------------------------------

void Connections::Receive(Entry entry) {
  Connection& connection = entry->second;
  const ssize_t count = connection.socket.Receive(buffer_.data(), buffer_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return AwaitInput(entry);
  if (count <= 0) return Close(entry);  // drops an incomplete request
  if (connection.input.empty()) connection.deadline = DeadlineAfter(limits_.head);
  connection.input.append(buffer_.data(), static_cast<size_t>(count));
  Process(entry);
}

void Connections::Process(Entry entry) {
  Connection& connection = entry->second;
  switch (connection.framing.Read(connection.input)) {
    case Framing::State::kHead:
      return AwaitInput(entry);
    case Framing::State::kBad: {
      const Framing::Fault fault = connection.framing.fault();
      return Refuse(entry, fault.type, fault.detail, true);
    }
    case Framing::State::kWhole:
      if (!Authenticate(entry)) return;
      return Dispatch(entry, connection.framing.size());
    case Framing::State::kBody:
      break;
  }
  if (connection.admitted) return AwaitInput(entry);
  if (!Authenticate(entry)) return;
  if (connection.framing.length() > kMaxBodyBytes || !parts_.admits(connection.framing.head())) {
    connection.close = true;
    return Dispatch(entry, connection.framing.head_bytes());
  }
  const bool chunked = connection.framing.chunked();
  const size_t body = chunked ? kMaxChunkedBytes : connection.framing.length();
  if (unread_body_bytes_ + body > limits_.unread_body_bytes)
    return Refuse(entry, rest::ProblemType::kConnectionLimit,
                  "too many requests with long bodies at once; send the request again", true);
  connection.admitted = true;
  connection.body_bytes = body;
  unread_body_bytes_ += body;
  connection.deadline = DeadlineAfter(limits_.body, chunked ? kMaxBodyBytes : body);
  if (connection.framing.expects_continue() &&
      connection.socket.Send(kContinue.data(), kContinue.size()) !=
          static_cast<ssize_t>(kContinue.size()))
    return Close(entry);  // a client that does not take this would not take an answer
  AwaitInput(entry);
}

// Removes the connection from the pool of unauthenticated ones if its request shows a valid token.
// Returns false if it refused the request because there are too many connections.
bool Connections::Authenticate(Entry entry) {
  Connection& connection = entry->second;
  if (connection.authenticated || !parts_.shows_token(connection.framing.head())) return true;
  if (authenticated_ >= limits_.connections && !AsksForHealth(connection.framing.head())) {
    Refuse(entry, rest::ProblemType::kConnectionLimit,
           "there are already " + std::to_string(limits_.connections) + " connections", true);
    return false;
  }
  if (authenticated_ >= limits_.connections) return true;
  connection.authenticated = true;
  ++authenticated_;
  unauthenticated_.Remove(entry->first);
  return true;
}

void Connections::AwaitInput(Entry entry) {
  Arm(entry, entry->second.socket.wants_write() ? EPOLLOUT : EPOLLIN | EPOLLRDHUP);
}

// Handles a complete request, or the head of one whose body is not needed.
void Connections::Dispatch(Entry entry, size_t bytes) {
  Connection& connection = entry->second;
  connection.request = std::make_shared<const std::string>(connection.input, 0, bytes);
  connection.input.erase(0, bytes);
  connection.patience = DeadlineAfter(limits_.postponed);
  connection.tried_twice = false;
  connection.heavy.reset();
  SubmitToWorker(entry);
}

// Gives the request to a worker, for the first time or again.
void Connections::SubmitToWorker(Entry entry) {
  Connection& connection = entry->second;
  const bool patient = Clock::now() < connection.patience;
  connection.stage = Stage::kAnswering;
  connection.deadline.reset();
  Handling handling{.patient = patient, .secure = connection.socket.is_secure()};
  if (connection.heavy) {
    handling.heavy = true;
    handling.left = connection.heavy->get_token();
    Arm(entry, EPOLLRDHUP);
  }
  Lane& lane = connection.heavy                           ? heavy_
               : AsksForHealth(connection.framing.head()) ? health_
                                                          : workers_;
  const bool taken = lane.Submit([this, id = entry->first, request = connection.request, handling] {
    OnAnswered(id, handling.left.stop_requested() ? StopRefusal()
                                                  : parts_.exchange->Answer(*request, handling));
  });
  if (taken) return;
  const size_t queued = connection.heavy ? limits_.heavy_queued : limits_.queued;
  Refuse(entry, rest::ProblemType::kConnectionLimit,
         "there are already " + std::to_string(queued) + " requests waiting", true);
}

// ---- Answers -------------------------------------------------------------------------------

// Writes the answer on the worker's thread, so no other thread must be woken first.
void Connections::OnAnswered(Id id, Written written) {
  const std::lock_guard turn(connections_mutex_);
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  BeginAnswer(entry, std::move(written));
  if (stop_deadline_) Wake();  // the thread may wait for the last answer
}

void Connections::Refuse(Entry entry, rest::ProblemType type, std::string detail, bool close) {
  Response refusal = Problem(type, std::move(detail));
  if (refusal.status == 503) refusal.Set("Retry-After", std::to_string(kRetryAfterSeconds));
  BeginAnswer(entry, Exchange::Refuse(refusal, close));
}

void Connections::BeginAnswer(Entry entry, Written written) {
  Connection& connection = entry->second;
  if (written.heavy) {
    connection.heavy.emplace();
    if (stop_deadline_) connection.heavy->request_stop();
    return SubmitToWorker(entry);
  }
  if (written.postponed && !stop_deadline_) {
    // An event may have happened between the attempt and the watch. A second attempt finds it.
    publisher_.WatchNextEvent();
    if (!std::exchange(connection.tried_twice, true)) return SubmitToWorker(entry);
    connection.stage = Stage::kPostponed;
    connection.deadline = connection.patience;
    return;
  }
  unread_body_bytes_ -= std::exchange(connection.body_bytes, 0);
  connection.request.reset();
  connection.output = std::move(written.bytes);
  connection.written = 0;
  connection.close |= written.close || stop_deadline_.has_value();
  if (written.follow) {
    connection.follow = std::move(written.follow);
    connection.close = stop_deadline_.has_value();
    connection.output += connection.close ? std::string(kLastChunk) : Chunk(StreamGreeting());
  }
  connection.deadline = DeadlineAfter(limits_.sending, connection.output.size());
  Write(entry);
}

void Connections::ContinueStream(Entry entry, const Message& message) {
  Connection& connection = entry->second;
  if (connection.stage != Stage::kFollowing) return;  // the connection is being closed
  connection.close |= message.over;
  connection.output = message.bytes;
  connection.written = 0;
  connection.deadline = DeadlineAfter(limits_.sending, connection.output.size());
  Write(entry);
}

void Connections::Write(Entry entry) {
  Connection& connection = entry->second;
  connection.stage = Stage::kWriting;
  while (connection.written < connection.output.size()) {
    const ssize_t count = connection.socket.Send(connection.output.data() + connection.written,
                                                 connection.output.size() - connection.written);
    if (count > 0) {
      connection.written += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      return Arm(entry, EPOLLOUT);
    } else if (errno != EINTR) {
      return Close(entry);
    }
  }
  connection.output = {};
  OnWritten(entry);
}

void Connections::OnWritten(Entry entry) {
  Connection& connection = entry->second;
  connection.deadline.reset();
  if (connection.close) return CloseGracefully(entry);
  if (connection.follow) {
    connection.stage = Stage::kFollowing;
    if (std::exchange(connection.is_published, true)) {
      publisher_.RequestNext(entry->first);
    } else {
      publisher_.AddStream(entry->first, connection.follow->after, connection.follow->sweep);
    }
    return Arm(entry, EPOLLIN | EPOLLRDHUP);
  }
  connection.stage = Stage::kReading;
  connection.framing = {};
  connection.admitted = false;
  if (connection.input.empty()) {
    connection.input.shrink_to_fit();
    connection.deadline = DeadlineAfter(limits_.idle);
    return AwaitInput(entry);
  }
  connection.deadline = DeadlineAfter(limits_.head);
  Process(entry);  // the next pipelined request
}

// Waits until the client has read the answer. Closing at once while it still sends would reset the
// connection, and the answer would be lost.
void Connections::CloseGracefully(Entry entry) {
  Connection& connection = entry->second;
  if (stop_deadline_) return Close(entry);
  connection.socket.EndSending();
  connection.stage = Stage::kClosing;
  connection.deadline = Clock::now() + kLinger;
  connection.input = {};
  Arm(entry, EPOLLIN);
}

// Discards input on a stream or after the last answer. Only the end of the connection matters.
void Connections::DiscardInput(Entry entry) {
  const ssize_t count = entry->second.socket.Receive(buffer_.data(), buffer_.size());
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return Close(entry);
  Arm(entry, entry->second.socket.wants_write() ? EPOLLOUT : EPOLLIN);
}

}  // namespace attune::server
