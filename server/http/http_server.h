#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/analysis/cost.h"
#include "server/folder/browser_sessions.h"
#include "server/folder/code_storage.h"
#include "server/folder/named_tokens.h"
#include "server/http/answers/pages.h"
#include "server/http/backend/backend.h"
#include "server/http/transport/limits.h"
#include "server/store/reader.h"

namespace attune::server {

// Serves the REST API (docs/reference/rest-api.md), the events stream and the dashboard's files on
// one port.
class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    int port = 7070;    // 0: any free one
    std::string token;  // what clients must show
    std::string version;
    std::optional<GpuHourPrice> gpu_hour_price;  // nullopt: costs have no money
    HttpLimits limits;

    // A second port for other machines, with HTTPS. OpenSSL writes without suppressing SIGPIPE, so
    // the process must ignore that signal.
    struct Https {
      std::string host = "0.0.0.0";
      int port = 7443;  // 0: any free one
      std::filesystem::path certificate;
      std::filesystem::path key;
    };
    std::optional<Https> https;

    // All pointers must outlive the server.
    Backend* backend = nullptr;
    Reader* reader = nullptr;
    const Algorithms* algorithms = nullptr;
    const NamedTokens* named_tokens = nullptr;  // additional tokens; null: none
    CodeStorage* code = nullptr;                // snapshots of code; null: the server keeps none
    const BrowserSessions* sessions = nullptr;
    std::span<const Asset> assets;
  };

  // Listens and serves on its own threads. Errors: those of ListenTcp, and kInvalid if the
  // certificate's files cannot be used. REQUIRES: a token, and no null pointer except
  // `named_tokens`. The process must be allowed to open as many descriptors as the limits need.
  static Result<std::unique_ptr<HttpServer>> Start(Options options);

  // Calls Stop.
  ~HttpServer();

  // Refuses new requests, ends the streams and waits for running requests. The backend must outlive
  // this call, because calls into it are not interrupted.
  void Stop();

  int port() const;
  // https://HOST:PORT, with a name from the certificate if possible; empty without HTTPS.
  std::string https_url() const;

 private:
  class Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace attune::server
