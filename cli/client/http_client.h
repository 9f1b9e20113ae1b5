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
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  bool ok() const { return status >= 200 && status < 300; }
};

// One connection to a server. An answer of any status is a Reply; errors are those of the
// connection (kUnavailable), with a message that says what to do. Calls are made from one thread.
//
// Before each request it looks where the server answers now (FindAgain), so that no other program
// gets the token.
class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint);
  ~HttpClient();

  Result<Reply> Get(const Request& request);
  // Sent once more when the connection breaks before the answer: give it an Idempotency-Key where
  // twice is not the same as once.
  Result<Reply> Post(const Request& request, const std::string& body, const std::string& type);

  Result<Reply> Delete(const Request& request);

  // Hands the body over as it arrives, if the status is 2xx, until it ends or `on_data` returns
  // false; the Reply's body is empty then, and the error's text otherwise.
  Result<Reply> Stream(const Request& request, const std::function<void()>& on_open,
                       const std::function<bool(std::string_view)>& on_data);

  // Ends the call in progress, from any thread.
  void Cancel();

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Connection;

  // The connection to where the server answers now.
  Result<Connection*> Connect();

  Endpoint endpoint_;
  std::mutex mutex_;  // of `connection_`, for Cancel()
  std::unique_ptr<Connection> connection_;
};

// The error a reply with a status other than 2xx tells: the problem's list of faults, a line each,
// or its title and detail. With `document`, faults are given as `document:LINE:COLUMN: …`.
Error ErrorOf(const Reply& reply, std::string_view document = "");

}  // namespace attune::cli
