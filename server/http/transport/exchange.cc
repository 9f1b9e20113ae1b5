#include "server/http/transport/exchange.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "server/http/transport/framing.h"
#include "server/http/transport/gzip.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr size_t kGzipFromBytes = 4 << 10;            // smaller answers gain nothing
constexpr size_t kRequestsPerConnection = 1'000'000;  // sent to clients; not enforced
constexpr const char* kAcceptEncoding = "X-Accept-Encoding";
constexpr std::string_view kSaysClose = "\r\nConnection: close\r\n";

// A request and its answer in memory, so that the library never waits for a socket.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view request) : request_(request) {}

  std::string Take() { return std::move(answer_); }
  bool AtEnd() const { return request_.empty(); }

  bool is_readable() const override { return !request_.empty(); }
  bool is_writable() const override { return true; }
  socket_t socket() const override { return 0; }
  ssize_t read(char* to, size_t size) override {
    const size_t count = request_.copy(to, size);
    request_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    answer_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }

 private:
  std::string_view request_;
  std::string answer_;
};

Request RequestOf(const httplib::Request& from, const std::string& path, const Handling& handling) {
  Request request{.method = from.method == "HEAD" ? "GET" : from.method,
                  .path = path,
                  .secure = handling.secure,
                  .patient = handling.patient,
                  .heavy = handling.heavy,
                  .left = handling.left};
  for (const auto& [name, value] : from.params) request.query.emplace(name, value);
  for (const auto& [name, value] : from.headers)
    request.headers.emplace(name == kAcceptEncoding ? "Accept-Encoding" : name, value);
  return request;
}

void FillResponse(httplib::Response& to, const Request& request, const Response& from) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  to.set_header("X-Content-Type-Options", "nosniff");
  if (from.follow) {
    // Only the head of the library's answer is used.
    to.set_chunked_content_provider(from.content_type,
                                    [](size_t, httplib::DataSink&) { return false; });
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

std::string_view Reason(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

}  // namespace

std::string Chunk(std::string_view text) {
  std::array<char, 24> size{};
  const int digits = std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
  std::string chunk(size.data(), static_cast<size_t>(digits));
  return chunk.append(text).append("\r\n");
}

// The library's server without its threads and sockets.
class Exchange::Library final : public httplib::Server {
 public:
  explicit Library(Exchange::Handler handle) : handle_(std::move(handle)) {
    svr_sock_ = 0;  // otherwise the library believes that it is shutting down and writes no bodies
    set_payload_max_length(kMaxBodyBytes);
    set_keep_alive_timeout(
        std::chrono::duration_cast<std::chrono::seconds>(HttpLimits{}.idle).count());
    set_keep_alive_max_count(kRequestsPerConnection);
    // Answers requests without a body before the library's own routing.
    set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      if (TakesBody(from.method)) return HandlerResponse::Unhandled;
      const std::string length = from.get_header_value("Content-Length");
      if ((!length.empty() && length != "0") || from.has_header("Transfer-Encoding"))
        to.set_header("Connection", "close");  // the body is not read
      Handle(RequestOf(from, run_->path, *run_->handling), to);
      if (from.method == "HEAD") run_->follow.reset();
      return HandlerResponse::Handled;
    });
    const HandlerWithContentReader with_body = [this](const httplib::Request& from,
                                                      httplib::Response& to,
                                                      const httplib::ContentReader& read) {
      Request request = RequestOf(from, run_->path, *run_->handling);
      bool too_long = false;
      const bool whole = read([&](const char* data, size_t size) {
        too_long = request.body.size() + size > kMaxBodyBytes;  // the body may have been compressed
        if (!too_long) request.body.append(data, size);
        return !too_long;
      });
      if (!whole) {
        request.unread = too_long || to.status == 413 ? rest::ProblemType::kBodyTooLarge
                                                      : rest::ProblemType::kIncompleteBody;
        to.set_header("Connection", "close");
      }
      Handle(request, to);
    };
    Post(R"([\s\S]*)", with_body);
    Patch(R"([\s\S]*)", with_body);
    // Answers requests that the library cannot parse and refuses by itself.
    const HandlerWithResponse on_error = [](const httplib::Request&, httplib::Response& to) {
      if (to.body.empty() && !to.content_provider_) {
        to.set_header("Connection", "close");
        const bool too_long = to.status == 414;
        FillResponse(
            to, {},
            Problem(too_long ? rest::ProblemType::kAddressTooLong
                             : rest::ProblemType::kMalformedRequest,
                    too_long ? "the address of the request is longer than " +
                                   std::to_string(CPPHTTPLIB_REQUEST_URI_MAX_LENGTH) + " bytes"
                             : "the request is not valid HTTP"));
      }
      return HandlerResponse::Handled;
    };
    set_error_handler(on_error);
  }

  Written Answer(std::string_view bytes, const Handling& handling) {
    Run run{.handling = &handling};
    run_ = &run;
    MemoryStream memory(bytes);
    bool closed = false;
    process_request(memory, false, closed, [&run](httplib::Request& request) {
      // Otherwise the library matches the path with a regular expression, which needs megabytes of
      // stack.
      run.path = std::exchange(request.path, "/");
      // Otherwise the library compresses every answer itself, and compressed files a second time.
      request.set_header(kAcceptEncoding, request.get_header_value("Accept-Encoding"));
      request.headers.erase("Accept-Encoding");
      request.headers.erase("Expect");        // already answered before the body was read
      request.headers.erase("Content-Type");  // otherwise the library parses forms
      request.ranges.clear();                 // answers are never sent in parts
    });
    run_ = nullptr;
    if (run.postponed || run.heavy) return {.postponed = run.postponed, .heavy = run.heavy};
    Written written{.bytes = memory.Take(), .follow = std::move(run.follow)};
    const size_t head = std::min(written.bytes.find("\r\n\r\n"), written.bytes.size());
    const bool says_close =
        std::string_view(written.bytes).substr(0, head + 2).find(kSaysClose) != std::string::npos;
    // If bytes are left over, the library and Framing disagree about the request's end. The rest of
    // the connection is then unusable.
    written.close = closed || says_close || !memory.AtEnd() || written.bytes.empty();
    return written;
  }

 private:
  // Results of a request in addition to the library's answer.
  struct Run {
    std::string path = {};  // decoded
    const Handling* handling = nullptr;
    bool postponed = false;
    bool heavy = false;
    std::optional<Follow> follow = {};
  };

  void Handle(const Request& request, httplib::Response& to) {
    Response response = handle_(request);
    run_->postponed = response.postponed;
    run_->heavy = response.heavy;
    FillResponse(to, request, response);
    run_->follow = std::move(response.follow);
  }

  const Exchange::Handler handle_;
  static thread_local Run* run_;  // of the current call of Answer on this thread
};

thread_local Exchange::Library::Run* Exchange::Library::run_ = nullptr;

Exchange::Exchange(Handler handle) : library_(std::make_unique<Library>(std::move(handle))) {}
Exchange::~Exchange() = default;

Written Exchange::Answer(std::string_view request, const Handling& handling) const {
  return library_->Answer(request, handling);
}

Written Exchange::Refuse(const Response& response, bool close) {
  std::string bytes = "HTTP/1.1 " + std::to_string(response.status) + " " +
                      std::string(Reason(response.status)) + "\r\n";
  for (const auto& [name, value] : response.headers) bytes += name + ": " + value + "\r\n";
  bytes += "X-Content-Type-Options: nosniff\r\n";
  if (close) bytes += "Connection: close\r\n";
  bytes += "Content-Type: " + response.content_type + "\r\n";
  bytes += "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n";
  return {.bytes = bytes + response.body, .close = close};
}

}  // namespace attune::server
