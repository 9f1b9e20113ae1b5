#include "server/http/http_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "server/http/access.h"
#include "server/http/api.h"
#include "server/http/gzip.h"
#include "server/http/problem.h"

namespace attune::server {
namespace {

constexpr int kWorkers = kMaxStreams + 32;  // threads: a connection or a stream holds one
constexpr int kBacklog = 128;               // connections that wait to be accepted
constexpr int kIdleMs = 5'000;              // a connection without a request
constexpr int kIoMs = 10'000;               // a client that neither sends nor takes
constexpr int kLingerMs = 1'000;            // for a client to read a refusal
constexpr size_t kRequestsPerConnection = 1'000'000;
constexpr size_t kReceiveBytes = 16 << 10;
constexpr size_t kGzipFromBytes = 4 << 10;  // smaller answers gain nothing
constexpr const char* kAcceptEncoding = "X-Accept-Encoding";

// ---- One connection ------------------------------------------------------------------------

// Buffers what is read, and holds an answer's head back so that head and body leave in one write:
// with two, Nagle's algorithm and delayed acknowledgements cost 40 ms a request. Ends its waits
// when the server stops.
class SocketStream final : public httplib::Stream {
 public:
  SocketStream(int socket, int stop) : socket_(socket), stop_(stop) {}

  // False when the connection is over: closed, idle for too long, or the server stops.
  bool AwaitRequest() { return begin_ < end_ || (Await(POLLIN, kIdleMs) && !Closed()); }

  void BeginAnswer() { holding_ = true; }

  bool Flush() {
    holding_ = false;
    const std::string held = std::exchange(held_, {});
    return SendAll(held);
  }

  // Whether the last answer's head said so.
  bool closing() const { return closing_; }

  // A client that still sends would lose the answer to the reset of an early close.
  void Linger() {
    ::shutdown(socket_, SHUT_WR);
    std::string rest(kReceiveBytes, '\0');
    for (size_t drained = 0; drained < 2 * kMaxBodyBytes && Await(POLLIN, kLingerMs);) {
      const ssize_t count = ::recv(socket_, rest.data(), rest.size(), MSG_DONTWAIT);
      if (count <= 0) return;
      drained += static_cast<size_t>(count);
    }
  }

  bool is_readable() const override { return begin_ < end_ || Await(POLLIN, kIoMs); }
  bool is_writable() const override { return Await(POLLOUT, kIoMs) && !Closed(); }
  socket_t socket() const override { return socket_; }

  ssize_t read(char* to, size_t size) override {
    if (!held_.empty() && !Flush()) return -1;  // "100 Continue" before the body
    if (begin_ == end_) {
      if (!Await(POLLIN, kIoMs)) return -1;
      const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (count <= 0) return count;
      begin_ = 0;
      end_ = static_cast<size_t>(count);
    }
    const size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    const std::string_view bytes(from, size);
    if (holding_) {
      holding_ = false;
      closing_ = bytes.find("\r\nConnection: close\r\n") != std::string_view::npos;
      held_ = bytes;
      return static_cast<ssize_t>(size);
    }
    if (held_.empty()) return SendAll(bytes) ? static_cast<ssize_t>(size) : -1;
    held_ += bytes;
    return Flush() ? static_cast<ssize_t>(size) : -1;
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "";
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = "";
    port = 0;
  }

 private:
  bool Await(short what, int timeout_ms) const {
    pollfd waits[2] = {{socket_, what, 0}, {stop_, POLLIN, 0}};
    int ready = 0;
    do {
      ready = ::poll(waits, 2, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return false;
    // A stop lets an answer that is being written go out.
    if (waits[1].revents != 0 && what == POLLIN) return false;
    return waits[0].revents != 0;
  }

  bool Closed() const {
    char byte = 0;
    return begin_ == end_ && ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  bool SendAll(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count =
          ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
      } else if (errno != EINTR && errno != EAGAIN) {
        return false;
      } else if (errno == EAGAIN && !Await(POLLOUT, kIoMs)) {
        return false;
      }
    }
    return true;
  }

  const int socket_;
  const int stop_;
  std::string buffer_ = std::string(kReceiveBytes, '\0');
  size_t begin_ = 0;
  size_t end_ = 0;
  std::string held_;
  bool holding_ = false;
  bool closing_ = false;
};

// The library's server with our connections.
class Listener final : public httplib::Server {
 public:
  explicit Listener(int stop) : stop_(stop) {}

  // The library asks for a backlog of 5.
  void Widen() { ::listen(svr_sock_, kBacklog); }

 private:
  bool process_and_close_socket(socket_t socket) override {
    SocketStream stream(socket, stop_);
    bool closed = false;
    bool answered = true;
    for (size_t served = 0; answered && !closed && !stream.closing() &&
                            served < kRequestsPerConnection && stream.AwaitRequest();
         ++served) {
      stream.BeginAnswer();
      answered = process_request(stream, false, closed, [](httplib::Request& request) {
        // Else the library would pack every answer itself, and packed files a second time.
        request.set_header(kAcceptEncoding, request.get_header_value("Accept-Encoding"));
        request.headers.erase("Accept-Encoding");
      });
      answered = stream.Flush() && answered;
    }
    if (stream.closing()) stream.Linger();
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return answered;
  }

  const int stop_;
};

// ---- Between the library's messages and ours -------------------------------------------------

Request RequestOf(const httplib::Request& from) {
  Request request{.method = from.method == "HEAD" ? "GET" : from.method, .path = from.path};
  for (const auto& [name, value] : from.params) request.query.emplace(name, value);
  for (const auto& [name, value] : from.headers)
    request.headers.emplace(name == kAcceptEncoding ? "Accept-Encoding" : name, value);
  return request;
}

class ChunkSink final : public Sink {
 public:
  explicit ChunkSink(httplib::DataSink& sink) : sink_(sink) {}
  bool Write(std::string_view text) override { return sink_.write(text.data(), text.size()); }
  bool Alive() const override { return sink_.is_writable(); }

 private:
  httplib::DataSink& sink_;
};

void Fill(httplib::Response& to, const Request& request, Response from,
          const std::atomic<bool>& stopping) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  to.set_header("X-Content-Type-Options", "nosniff");
  if (from.stream) {
    to.set_chunked_content_provider(from.content_type, [turn = std::move(from.stream), &stopping](
                                                           size_t, httplib::DataSink& out) {
      ChunkSink sink(out);
      if (stopping.load() || !turn(sink)) out.done();
      return true;
    });
  } else if (!from.static_body.empty()) {
    to.set_content_provider(
        from.static_body.size(), from.content_type,
        [bytes = from.static_body](size_t offset, size_t length, httplib::DataSink& out) {
          return out.write(bytes.data() + offset, length);
        });
  } else if (!from.content_type.empty()) {
    const bool pack =
        from.body.size() >= kGzipFromBytes &&
        request.Header("Accept-Encoding").value_or("").find("gzip") != std::string::npos;
    if (pack) to.set_header("Content-Encoding", "gzip");
    to.set_content(pack ? Gzip(from.body) : from.body, from.content_type);
  }
}

Error CannotListen(const HttpServer::Options& options, int system_error) {
  const std::string place = options.host + ":" + std::to_string(options.port);
  if (system_error == EADDRINUSE)
    return {ErrorCode::kUnavailable, "port " + std::to_string(options.port) + " of " +
                                         options.host +
                                         " is taken by another program: choose another with "
                                         "--port, or 0 for any free one"};
  if (system_error == EACCES)
    return {ErrorCode::kDenied,
            "may not listen on " + place + ": choose a port above 1023 with --port"};
  return {ErrorCode::kUnavailable,
          "cannot listen on " + place + ": " +
              (system_error == 0 ? "is the host's name right?" : std::strerror(system_error))};
}

}  // namespace

// ---- The server ------------------------------------------------------------------------------

class HttpServer::Parts {
 public:
  explicit Parts(Options options)
      : options_(std::move(options)),
        access_(options_.host, options_.token),
        pages_(options_.assets),
        api_({.backend = options_.backend,
              .reader = options_.reader,
              .algorithms = options_.algorithms,
              .program_exists = options_.program_exists,
              .version = options_.version}),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        listener_(stop_) {
    ATTUNE_CHECK(stop_ >= 0);
    Configure();
  }

  ~Parts() {
    Stop();
    ::close(stop_);
  }

  Status Listen() {
    errno = 0;
    if (options_.port == 0) {
      port_ = listener_.bind_to_any_port(options_.host);
      if (port_ <= 0) return CannotListen(options_, errno);
    } else {
      if (!listener_.bind_to_port(options_.host, options_.port))
        return CannotListen(options_, errno);
      port_ = options_.port;
    }
    listener_.Widen();
    thread_ = std::thread([this] {
      listener_.listen_after_bind();
      ended_ = true;
    });
    return {};
  }

  void Stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    ATTUNE_CHECK(::eventfd_write(stop_, 1) == 0);
    // stop() does nothing before the thread above has reached accept().
    while (!listener_.is_running() && !ended_) std::this_thread::yield();
    listener_.stop();
    thread_.join();
  }

  int port() const { return port_; }

 private:
  using HandlerResponse = httplib::Server::HandlerResponse;

  void Configure() {
    listener_.new_task_queue = [] { return new httplib::ThreadPool(kWorkers); };
    listener_.set_tcp_nodelay(true);
    // The library's default lets two servers share a port.
    listener_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    listener_.set_keep_alive_max_count(kRequestsPerConnection);
    listener_.set_payload_max_length(kMaxBodyBytes);
    // Whatever has no body to read is answered before the library's own routing.
    listener_.set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      if (from.method == "POST") return HandlerResponse::Unhandled;
      if (from.has_header("Content-Length") || from.has_header("Transfer-Encoding"))
        to.set_header("Connection", "close");  // its body is not read
      const Request request = RequestOf(from);
      Fill(to, request, Answer(request), stopping_);
      return HandlerResponse::Handled;
    });
    listener_.Post(R"([\s\S]*)", [this](const httplib::Request& from, httplib::Response& to,
                                        const httplib::ContentReader& read) {
      Request request = RequestOf(from);
      Fill(to, request, AnswerPost(request, read, to), stopping_);
    });
    // What the library refuses by itself: a request it cannot read.
    const httplib::Server::HandlerWithResponse on_error = [this](const httplib::Request&,
                                                                 httplib::Response& to) {
      if (to.body.empty() && !to.content_provider_) {
        to.set_header("Connection", "close");
        Fill(to, {}, Problem(to.status, "the request is not HTTP that this server reads"),
             stopping_);
      }
      return HandlerResponse::Handled;
    };
    listener_.set_error_handler(on_error);
  }

  // The body is read only after access is granted; an answer before its end closes the connection.
  Response AnswerPost(Request& request, const httplib::ContentReader& read, httplib::Response& to) {
    if (auto refusal = access_.Refuse(request)) {
      to.set_header("Connection", "close");
      return *std::move(refusal);
    }
    bool too_long = false;
    const bool whole = read([&](const char* data, size_t size) {
      too_long = request.body.size() + size > kMaxBodyBytes;
      if (!too_long) request.body.append(data, size);
      return !too_long;
    });
    if (!whole) {
      to.set_header("Connection", "close");
      const bool large = too_long || to.status == 413;
      return large ? Problem(413,
                             "the body is longer than " + std::to_string(kMaxBodyBytes) + " bytes")
                   : Problem(400, "the body could not be read to its end");
    }
    return Answer(request);
  }

  Response Answer(const Request& request) {
    try {
      if (auto refusal = access_.Refuse(request)) return *std::move(refusal);
      return Route(request);
    } catch (const std::exception& error) {
      return Problem(500, std::string("an unexpected error; please report it: ") + error.what());
    }
  }

  Response Route(const Request& request) {
    const std::string& path = request.path;
    if (IsApi(path) || path == "/livez" || path == "/readyz" || path == "/version")
      return api_.Handle(request);
    if (request.method != "GET") {
      Response refusal = Problem(405, path + " takes GET, HEAD, not " + request.method);
      refusal.Set("Allow", "GET, HEAD");
      return refusal;
    }
    return path == "/login" ? access_.Login(request) : pages_.Get(request);
  }

  const Options options_;
  const Access access_;
  const Pages pages_;
  Api api_;
  const int stop_;  // readable for ever once the server stops
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;  // the listening thread
  Listener listener_;
  int port_ = 0;
  std::thread thread_;
};

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  auto parts = std::make_unique<Parts>(std::move(options));
  if (Status listening = parts->Listen(); !listening.ok()) return listening.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() = default;

void HttpServer::Stop() { parts_->Stop(); }

int HttpServer::port() const { return parts_->port(); }

}  // namespace attune::server
