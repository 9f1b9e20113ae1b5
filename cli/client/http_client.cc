#include "cli/client/http_client.h"

#include <httplib.h>

#include <algorithm>
#include <cctype>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/width.h"
#include "json/parse.h"
#include "rest/contract.h"
#include "system/sockets.h"

namespace attune::cli {
namespace {

constexpr int kConnectTimeoutSeconds = 5;
// Longer than the 15 s between two keep-alive messages of the events stream.
constexpr int kReadTimeoutSeconds = 40;

httplib::Headers HeadersOf(const Request& request, const std::string& token) {
  httplib::Headers headers(request.headers.begin(), request.headers.end());
  if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
  return headers;
}

std::string PathOf(const Request& request) {
  if (request.query.empty()) return request.path;
  return httplib::append_query_params(request.path,
                                      httplib::Params(request.query.begin(), request.query.end()));
}

Reply ReplyOf(const httplib::Response& response) {
  Reply reply{.status = response.status, .body = response.body};
  for (const auto& [name, value] : response.headers) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[lower] = value;
  }
  return reply;
}

std::string Reason(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "the connection was refused";
    case httplib::Error::ConnectionTimeout:
      return "the connection timed out";
    case httplib::Error::Read:
      return "the connection was closed";
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLLoadingCerts:
    case httplib::Error::SSLServerVerification:
      return "this host does not trust its certificate, or the certificate has another name "
             "(SSL_CERT_FILE adds certificates to trust)";
    default:
      return httplib::to_string(error);
  }
}

bool IsOfLoopback(const std::string& url) {
  const std::string host = url.substr(url.find("://") + 3);
  return host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]");
}

Error Unreachable(const Endpoint& endpoint, httplib::Error error) {
  if (IsOfLoopback(endpoint.url) && !IsLoopbackUp())
    return {ErrorCode::kInternal,
            "cannot reach " + endpoint.url +
                ": this host's loopback interface is down; bring it up with `ip link set lo up`"};
  return {ErrorCode::kUnavailable,
          "no server answers at " + endpoint.url + " (from " + endpoint.source +
              "): " + Reason(error) +
              "\nstart one with `attune serve`, or choose another with --server URL"};
}

ErrorCode CodeOf(int status) {
  switch (status) {
    case 400:
    case 413:
    case 422:
      return ErrorCode::kInvalid;
    case 401:
    case 403:
      return ErrorCode::kDenied;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 503:
      return ErrorCode::kUnavailable;
    case 507:
      return ErrorCode::kStorageFull;
    default:
      return ErrorCode::kInternal;
  }
}

// Converts a JSON pointer to the form of sweep files: /parameters/lr/max to parameters.lr.max,
// /tags/2 to tags[2].
std::string KeyOf(const std::string& pointer) {
  std::string path;
  for (size_t begin = 1; begin < pointer.size();) {
    const size_t end = std::min(pointer.find('/', begin), pointer.size());
    std::string part = pointer.substr(begin, end - begin);
    for (const auto& [escape, plain] : {std::pair("~1", "/"), std::pair("~0", "~")}) {
      for (size_t at = 0; (at = part.find(escape, at)) != part.npos; ++at)
        part.replace(at, 2, plain);
    }
    const bool is_index = !path.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (is_index) {
      path += '[' + part + ']';
    } else {
      path += (path.empty() ? "" : ".") + part;
    }
    begin = end + 1;
  }
  return path;
}

// The fault in one line. It has a line and column only for a document that the user has written.
std::string FaultLine(const rest::Fault& fault, std::string_view document) {
  std::string line;
  if (!document.empty()) {
    line = std::string(document) + ':';
    if (fault.line > 0) {
      line += std::to_string(fault.line) + ':' + std::to_string(fault.column) + ':';
    }
    line += ' ';
  }
  const std::string path = KeyOf(fault.pointer);
  if (!path.empty()) line += Clean(path) + ": ";
  return line + Clean(fault.message);
}

// Replaces the server's message, which describes HTTP headers.
constexpr char kNoToken[] =
    "the server's token is missing or wrong\npass it with --token-file FILE or ATTUNE_TOKEN; it "
    "is in the server's DATA-DIR/token";

}  // namespace

struct HttpClient::Connection {
  explicit Connection(const std::string& url) : client(url) {
    client.set_connection_timeout(kConnectTimeoutSeconds);
    client.set_read_timeout(kReadTimeoutSeconds);
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
  }
  httplib::Client client;
};

HttpClient::HttpClient(Endpoint endpoint)
    : endpoint_(std::move(endpoint)), connection_(std::make_unique<Connection>(endpoint_.url)) {}

HttpClient::~HttpClient() = default;

Result<HttpClient::Connection*> HttpClient::Connect() {
  const Result<std::string> url = FindCurrentUrl(endpoint_);
  if (!url.ok()) return url.error();
  if (*url != endpoint_.url) {
    const std::lock_guard lock(mutex_);
    endpoint_.url = *url;
    connection_ = std::make_unique<Connection>(*url);
  }
  return connection_.get();
}

Result<Reply> HttpClient::Get(const Request& request) {
  const auto connection = Connect();
  if (!connection.ok()) return connection.error();
  const httplib::Result result =
      (*connection)->client.Get(PathOf(request), HeadersOf(request, endpoint_.token));
  if (!result) return Unreachable(endpoint_, result.error());
  return ReplyOf(*result);
}

Result<Reply> HttpClient::Post(const Request& request, const std::string& body,
                               const std::string& type) {
  for (bool can_retry = true;; can_retry = false) {
    const auto connection = Connect();
    if (!connection.ok()) return connection.error();
    const httplib::Result result =
        (*connection)
            ->client.Post(PathOf(request), HeadersOf(request, endpoint_.token), body, type);
    if (result) return ReplyOf(*result);
    if (!can_retry || result.error() != httplib::Error::Read)
      return Unreachable(endpoint_, result.error());
  }
}

Result<Reply> HttpClient::Delete(const Request& request) {
  const auto connection = Connect();
  if (!connection.ok()) return connection.error();
  const httplib::Result result =
      (*connection)->client.Delete(PathOf(request), HeadersOf(request, endpoint_.token));
  if (!result) return Unreachable(endpoint_, result.error());
  return ReplyOf(*result);
}

Result<Reply> HttpClient::Stream(const Request& request, const std::function<void()>& on_open,
                                 const std::function<bool(std::string_view)>& on_data) {
  const auto connection = Connect();
  if (!connection.ok()) return connection.error();
  bool is_success = false;
  Reply reply;
  const httplib::Result result = (*connection)
                                     ->client.Get(
                                         PathOf(request), HeadersOf(request, endpoint_.token),
                                         [&](const httplib::Response& response) {
                                           reply = ReplyOf(response);
                                           is_success = reply.ok();
                                           if (is_success) on_open();
                                           return true;
                                         },
                                         [&](const char* data, size_t size) {
                                           if (is_success) return on_data({data, size});
                                           reply.body.append(data, size);
                                           return true;
                                         });
  if (!result && result.error() != httplib::Error::Canceled) {
    return Unreachable(endpoint_, result.error());
  }
  return reply;
}

void HttpClient::Cancel() {
  const std::lock_guard lock(mutex_);
  connection_->client.stop();
}

Error ErrorOf(const Reply& reply, std::string_view document) {
  if (reply.status == 401) return {ErrorCode::kDenied, kNoToken};
  const auto problem = rest::Parse<rest::Problem>(ParseJson<Json>(reply.body));
  if (!problem.ok()) {  // probably the answer of a proxy
    return {CodeOf(reply.status),
            "the server answered with HTTP " + std::to_string(reply.status) +
                " and no explanation; check --server, and any proxy on the way"};
  }
  std::string message;
  for (const rest::Fault& fault : problem->errors.value_or(std::vector<rest::Fault>())) {
    message += (message.empty() ? "" : "\n") + FaultLine(fault, document);
  }
  if (!message.empty()) return {CodeOf(reply.status), message};

  const std::string detail = Clean(problem->detail);
  // The title is about the request's body, which flags have produced, so it would not help the
  // user.
  if (reply.status != 422 || detail.empty()) message = Clean(problem->title);
  if (!detail.empty() && detail != message) message += (message.empty() ? "" : ": ") + detail;
  if (detail.starts_with("there is no sweep")) message += "\nlist them with `attune sweep list`";
  return {CodeOf(reply.status), message};
}

}  // namespace attune::cli
