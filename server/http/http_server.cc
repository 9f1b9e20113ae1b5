#include "server/http/http_server.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "server/http/access/access.h"
#include "server/http/answers/event_stream.h"
#include "server/http/routes/api.h"
#include "server/http/transport/connections.h"
#include "server/http/transport/exchange.h"
#include "server/http/transport/problem.h"
#include "server/network/tcp_listener.h"

namespace attune::server {

class HttpServer::Parts {
 public:
  Parts(Options options, std::shared_ptr<Certificate> certificate)
      : options_(std::move(options)),
        certificate_(std::move(certificate)),
        access_({.host = options_.host,
                 .certificate = certificate_,
                 .secret = options_.token,
                 .others = options_.named_tokens,
                 .sessions = options_.sessions}),
        pages_(options_.assets),
        api_({.backend = options_.backend,
              .reader = options_.reader,
              .algorithms = options_.algorithms,
              .version = options_.version,
              .gpu_hour_price = options_.gpu_hour_price,
              .streams = options_.limits.streams,
              .named_tokens = options_.named_tokens,
              .code = options_.code,
              .pages = &pages_}),
        event_stream_(*options_.backend, *options_.reader),
        exchange_([this](const Request& request) { return Answer(request); }) {}

  Status Listen() {
    auto listening = ListenTcp(options_.host, options_.port, "--port");
    if (!listening.ok()) return listening.error();
    port_ = listening->port;
    access_.SetPort(port_);
    std::vector<Connections::Listener> listeners;
    listeners.push_back({.socket = std::move(listening->socket), .certificate = {}});
    if (options_.https) {
      auto secure = ListenTcp(options_.https->host, options_.https->port, "--https-port");
      if (!secure.ok()) return secure.error();
      https_port_ = secure->port;
      listeners.push_back({.socket = std::move(secure->socket), .certificate = certificate_});
    }
    connections_ = std::make_unique<Connections>(
        Connections::Parts{
            .exchange = &exchange_,
            .shows_token = [this](const Request& head) { return access_.ShowsToken(head); },
            .admits = [this](const Request& head) { return Admits(head); },
            .feed = &event_stream_,
            .limits = options_.limits,
        },
        std::move(listeners));
    return {};
  }

  void Stop() {
    if (connections_ != nullptr) connections_->Stop();
  }

  int port() const { return port_; }

  std::string https_url() const {
    if (!options_.https) return "";
    std::string name = options_.https->host;
    if (!certificate_->IsFor(name) && !certificate_->Name().empty()) name = certificate_->Name();
    if (name.find(':') != std::string::npos) name = "[" + name + "]";
    return "https://" + name + ":" + std::to_string(https_port_);
  }

 private:
  // Whether the body of a request may be read. The path is not decoded yet, so every path needs a
  // valid token.
  bool Admits(Request head) const {
    return TakesBody(head.method) && access_.ShowsToken(head) && !access_.Refuse(head).has_value();
  }

  Response Answer(Request request) {
    try {
      if (auto refusal = access_.Refuse(request)) {
        if (TakesBody(request.method)) refusal->Set("Connection", "close");
        return *std::move(refusal);
      }
      if (request.unread == rest::ProblemType::kBodyTooLarge)
        return Problem(*request.unread,
                       "the body is longer than " + std::to_string(kMaxBodyBytes) + " bytes");
      if (request.unread) return Problem(*request.unread, "the body did not arrive completely");
      return Route(request);
    } catch (const std::exception& error) {
      return Problem(rest::ProblemType::kInternal,
                     std::string("an unexpected error; please report it: ") + error.what());
    }
  }

  Response Route(const Request& request) {
    const std::string& path = request.path;
    if (IsApi(path) || path == "/livez" || path == "/readyz" || path == "/version")
      return api_.Handle(request);
    if (path == "/logout" && request.method == "POST") return access_.Logout(request);
    if (request.method != "GET") {
      Response refusal = Problem(rest::ProblemType::kMethodNotAllowed,
                                 path + " takes GET, HEAD, not " + request.method);
      refusal.Set("Allow", "GET, HEAD");
      return refusal;
    }
    return path == "/login" ? access_.Login(request) : pages_.Get(request);
  }

  const Options options_;
  const std::shared_ptr<Certificate> certificate_;  // null without HTTPS
  Access access_;
  const Pages pages_;
  Api api_;
  EventStream event_stream_;
  Exchange exchange_;
  std::unique_ptr<Connections> connections_;
  int port_ = 0;
  int https_port_ = 0;
};

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  std::shared_ptr<Certificate> certificate;
  if (options.https) {
    auto loaded = Certificate::Load(options.https->certificate, options.https->key);
    if (!loaded.ok()) return loaded.error();
    certificate = std::move(loaded).value();
  }
  auto parts = std::make_unique<Parts>(std::move(options), std::move(certificate));
  if (Status listening = parts->Listen(); !listening.ok()) return listening.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() = default;

void HttpServer::Stop() { parts_->Stop(); }

int HttpServer::port() const { return parts_->port(); }

std::string HttpServer::https_url() const { return parts_->https_url(); }

}  // namespace attune::server
