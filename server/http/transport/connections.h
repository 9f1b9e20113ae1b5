#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "server/http/transport/certificate.h"
#include "server/http/transport/exchange.h"
#include "server/http/transport/framing.h"
#include "server/http/transport/lane.h"
#include "server/http/transport/limits.h"
#include "server/http/transport/publisher.h"
#include "server/http/transport/socket.h"
#include "server/network/unauthenticated_pool.h"
#include "system/unique_fd.h"

namespace attune::server {

// Every open connection. One thread waits for what any of them has to say or can take: it frames
// requests, hands whole ones to workers, and writes what has not been taken at once. Nobody waits
// for a client. So a connection holds a worker only while a request is being answered, and an
// events stream never.
class Connections {
 public:
  struct Parts {
    const Exchange* exchange = nullptr;  // outlives the object
    // Whether the head of a request shows a valid token, and whether the body of such a request is
    // to be read. They read at most a small file.
    std::function<bool(const Request& head)> shows_token;
    std::function<bool(const Request& head)> admits;
    EventFeed* feed = nullptr;  // outlives the object
    HttpLimits limits;
  };

  // A socket that listens and does not block. With a certificate, its connections speak TLS.
  struct Listener {
    UniqueFd socket;
    std::shared_ptr<Certificate> certificate;
  };

  Connections(Parts parts, std::vector<Listener> listeners);
  ~Connections();  // stops

  // Takes no more requests, ends the streams and waits for the answers being given, for a little
  // while also until they are taken.
  void Stop();

 private:
  using Id = uint64_t;
  using Clock = std::chrono::steady_clock;
  enum class Stage {
    kReading,    // for a request, or in the middle of one
    kAnswering,  // a worker has it
    kLater,      // there is no answer yet
    kWriting,
    kFollowing,  // an events stream that has written everything
    kClosing,    // written, and waits for the client to read it
  };
  struct Connection {
    Socket socket;
    Stage stage = Stage::kReading;
    bool authenticated = false;             // a request has shown a valid token
    bool close = false;                     // after what is being written
    bool admitted = false;                  // its body is read
    bool asked_twice = false;               // and no answer either time
    bool followed = false;                  // the publisher knows it
    std::optional<std::stop_source> heavy;  // its request takes long; stops when the client leaves
    Framing framing;
    std::string in;                              // read, and not answered
    std::shared_ptr<const std::string> request;  // that is being answered
    std::string out;                             // from `written` on, to be written
    size_t written = 0;
    size_t body_bytes = 0;  // its part of unread_body_bytes_
    std::optional<Follow> follows;
    std::optional<Clock::time_point> deadline;
    Clock::time_point patience;  // for an answer that is put off
  };
  // From the publisher.
  struct Message {
    Id connection = 0;
    std::string bytes;
    bool over = false;  // the stream is
  };
  using Place = std::map<Id, Connection>::iterator;

  void Run();
  void Listen();
  void StopListening();
  void Accept(const Listener& listener);
  void Serve(Id id, uint32_t events);
  void Receive(Place place);
  void Process(Place place);
  bool Authenticate(Place place);
  void Wait(Place place);
  void Refuse(Place place, rest::ProblemType type, std::string detail, bool close);
  void Dispatch(Place place, size_t bytes);
  void Hand(Place place);
  void Answered(Id id, Written written);  // on a worker's thread
  void Begin(Place place, Written written);
  void Continue(Place place, const Message& message);
  void Write(Place place);
  void Finished(Place place);
  void Linger(Place place);
  void Drain(Place place);
  void Close(Place place);
  void Arm(Place place, uint32_t events);
  void Expire(Place place);
  void Tick();
  void EndRevokedStreams();
  void HandleMessages();
  void BeginStop();
  void Tell(Message message);
  void Wake();
  Clock::time_point In(std::chrono::milliseconds time, size_t bytes = 0) const;

  const Parts parts_;
  const HttpLimits limits_;
  std::vector<Listener> listeners_;
  const int epoll_;
  const int wake_;

  // Whoever holds it may do what follows from an event or an answer: the thread, but while it
  // waits, and a worker that has an answer.
  std::mutex turn_;
  std::map<Id, Connection> connections_;
  UnauthenticatedPool unauthenticated_;
  size_t authenticated_ = 0;
  size_t unread_body_bytes_ = 0;
  uint64_t ticks_ = 0;
  Id last_id_;
  bool accepting_ = false;
  std::string buffer_;
  std::optional<Clock::time_point> end_;  // of a stop

  std::mutex mutex_;
  std::vector<Message> messages_;
  bool happened_ = false;  // see Publisher::Watch
  bool stopping_ = false;

  Publisher publisher_;
  Lane health_;
  Lane workers_;
  Lane heavy_;
  std::thread thread_;
};

}  // namespace attune::server
