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

// Manages all open connections. One thread waits for events of all of them. It reads requests,
// gives complete ones to workers, and writes what could not be written at once. No thread waits for
// a client. A connection uses a worker only while a request is handled, and an events stream never
// does.
class Connections {
 public:
  struct Parts {
    const Exchange* exchange = nullptr;  // outlives the object
    // Whether the head of a request shows a valid token, and whether the body of such a request may
    // be read. Both may read at most a small file.
    std::function<bool(const Request& head)> shows_token;
    std::function<bool(const Request& head)> admits;
    EventFeed* feed = nullptr;  // outlives the object
    HttpLimits limits;
  };

  // A listening socket that does not block. With a certificate, its connections use TLS.
  struct Listener {
    UniqueFd socket;
    std::shared_ptr<Certificate> certificate;
  };

  Connections(Parts parts, std::vector<Listener> listeners);
  ~Connections();  // calls Stop

  // Refuses new requests, ends the streams and waits for running requests. Waits a short time for
  // clients to take their answers.
  void Stop();

 private:
  using Id = uint64_t;
  using Clock = std::chrono::steady_clock;
  enum class Stage {
    kReading,    // waits for a request or is reading one
    kAnswering,  // a worker handles the request
    kPostponed,  // the answer is postponed
    kWriting,
    kFollowing,  // an events stream that has written everything
    kClosing,    // has written everything and waits for the client to read it
  };
  struct Connection {
    Socket socket;
    Stage stage = Stage::kReading;
    bool authenticated = false;  // a request has shown a valid token
    bool close = false;          // close after the present output
    bool admitted = false;       // the body of its request is being read
    bool tried_twice = false;    // the postponed request was tried twice
    bool is_published = false;   // the publisher knows the stream
    // set for a heavy request; stops when the client disconnects
    std::optional<std::stop_source> heavy;
    Framing framing;
    std::string input;  // received bytes of requests that are not answered yet
    std::shared_ptr<const std::string> request;  // the request that is being handled
    std::string output;                          // bytes to write, from `written` on
    size_t written = 0;
    size_t body_bytes = 0;  // its part of unread_body_bytes_
    std::optional<Follow> follow;
    std::optional<Clock::time_point> deadline;
    Clock::time_point patience;  // end of the postponement
  };
  // A text for an events stream, from the publisher.
  struct Message {
    Id connection = 0;
    std::string bytes;
    bool over = false;  // the stream ends
  };
  using Entry = std::map<Id, Connection>::iterator;

  void Run();
  void Listen();
  void StopListening();
  void Accept(const Listener& listener);
  void OnEvent(Id id, uint32_t events);
  void Receive(Entry entry);
  void Process(Entry entry);
  bool Authenticate(Entry entry);
  void AwaitInput(Entry entry);
  void Refuse(Entry entry, rest::ProblemType type, std::string detail, bool close);
  void Dispatch(Entry entry, size_t bytes);
  void SubmitToWorker(Entry entry);
  void OnAnswered(Id id, Written written);  // called on a worker's thread
  void BeginAnswer(Entry entry, Written written);
  void ContinueStream(Entry entry, const Message& message);
  void Write(Entry entry);
  void OnWritten(Entry entry);
  void CloseGracefully(Entry entry);
  void DiscardInput(Entry entry);
  void Close(Entry entry);
  void Arm(Entry entry, uint32_t events);
  void OnDeadline(Entry entry);
  void Tick();
  void EndRevokedStreams();
  void HandleMessages();
  void BeginStop();
  static Written StopRefusal();  // the answer to a request during a stop
  void PostMessage(Message message);
  void Wake();
  Clock::time_point DeadlineAfter(std::chrono::milliseconds time, size_t bytes = 0) const;

  const Parts parts_;
  const HttpLimits limits_;
  std::vector<Listener> listeners_;
  const int epoll_;
  const int wake_;

  // Guards the connections. The thread holds it except while it waits. A worker takes it to deliver
  // an answer.
  std::mutex connections_mutex_;
  std::map<Id, Connection> connections_;
  UnauthenticatedPool unauthenticated_;
  size_t authenticated_ = 0;
  size_t unread_body_bytes_ = 0;
  uint64_t ticks_ = 0;
  Id last_id_;
  bool accepting_ = false;
  std::string buffer_;
  std::optional<Clock::time_point> stop_deadline_;  // when Stop gives up waiting

  std::mutex mutex_;
  std::vector<Message> messages_;
  bool event_happened_ = false;  // see Publisher::WatchNextEvent
  bool stopping_ = false;

  Publisher publisher_;
  Lane health_;
  Lane workers_;
  Lane heavy_;
  std::thread thread_;
};

}  // namespace attune::server
