#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "rest/contract.h"

// Requests and answers for handlers. Only transport/exchange.cc knows the HTTP library.
namespace attune::server {

struct CaseInsensitive {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};

// Whether two texts differ at most in the case of ASCII letters.
bool EqualsIgnoringCase(std::string_view a, std::string_view b);

// Whether the server reads the body of a request with this method.
inline bool TakesBody(std::string_view method) { return method == "POST" || method == "PATCH"; }

struct Request {
  std::string method;  // HEAD becomes GET; the transport omits the body of the answer
  std::string path;    // decoded
  std::multimap<std::string, std::string, std::less<>> query;
  std::multimap<std::string, std::string, CaseInsensitive> headers;
  std::string body;
  std::optional<rest::ProblemType> unread;  // why the body was not read; nullopt: it was read
  bool secure = false;                      // it came over TLS
  bool patient = true;    // whether the answer may be postponed (Response::postponed)
  bool heavy = false;     // it runs on a thread for heavy requests
  std::stop_token left;   // for a heavy request: set when the client disconnects
  std::string actor;      // name of the token that it shows
  bool is_admin = false;  // whether that token has the role admin

  // The first value with this name.
  std::optional<std::string> Header(std::string_view name) const;
  std::optional<std::string> Query(std::string_view name) const;
};

// An answer without an end: the events after `after`, of one sweep or of all.
struct Follow {
  EventSeq after;
  std::optional<SweepId> sweep;
  std::shared_ptr<void> place;  // held while the stream is open; releases its slot
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type;
  std::string body;

  // Instead of `body`: bytes that outlive the server, such as an embedded file.
  std::string_view static_body;

  // Instead of a body: the answer continues with events.
  std::optional<Follow> follow;

  // Instead of an answer: there is none yet. The request is handled again after the next event, and
  // finally with `patient` false.
  bool postponed = false;

  // Instead of an answer: the request takes long and is handled again on a thread for heavy
  // requests.
  bool heavy = false;

  Response& Set(std::string name, std::string value) {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
};

}  // namespace attune::server
