#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/client/endpoint.h"

namespace attune::cli {

struct Request {
  std::string path;  // /api/v1/sweeps
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;
};

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // by name, in lower case
  std::string body;

  bool ok() const { return status >= 200 && status < 300; }
};

// A connection to a server, for use on one thread. An answer of any status is a Reply. Errors mean
// that there was no answer (kUnavailable); their message includes the next step.
//
// Looks the server's URL up before each request (FindCurrentUrl), so that no other program gets the
// token.
class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint);
  ~HttpClient();

  Result<Reply> Get(const Request& request);
  // Retries once if the connection breaks before the answer. Requests that must not run twice need
  // an Idempotency-Key.
  Result<Reply> Post(const Request& request, const std::string& body, const std::string& type);

  Result<Reply> Delete(const Request& request);

  // If the status is 2xx, passes the body to `on_data` as it arrives, until it ends or `on_data`
  // returns false; the Reply's body stays empty. For other statuses the Reply has the body.
  Result<Reply> Stream(const Request& request, const std::function<void()>& on_open,
                       const std::function<bool(std::string_view)>& on_data);

  // Ends the call in progress, from any thread.
  void Cancel();

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Connection;

  // The connection to the current URL of the server; owned by this.
  Result<Connection*> Connect();

  Endpoint endpoint_;
  std::mutex mutex_;  // guards `connection_` against Cancel()
  std::unique_ptr<Connection> connection_;
};

// The error of a Reply whose status is not 2xx: a line for each fault of the problem, or its title
// and detail. With `document`, faults have the form `document:LINE:COLUMN: …`.
Error ErrorOf(const Reply& reply, std::string_view document = "");

}  // namespace attune::cli
