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

// Requests and answers as the handlers see them. Only transport/exchange.cc knows the HTTP library.
namespace attune::server {

struct CaseInsensitive {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};

// Whether a request of this method has a body that is read.
inline bool TakesBody(std::string_view method) { return method == "POST" || method == "PATCH"; }

struct Request {
  std::string method;  // HEAD arrives as GET; the transport leaves the body away
  std::string path;    // decoded
  std::multimap<std::string, std::string, std::less<>> query;
  std::multimap<std::string, std::string, CaseInsensitive> headers;
  std::string body;
  std::optional<rest::ProblemType> unread;  // why the body was not read; nullopt: it was read
  bool secure = false;                      // it came by TLS
  bool patient = true;                      // whether an answer may be put off (Response::later)
  bool heavy = false;                       // it runs in the lane of heavy requests
  std::stop_token left;                     // of a heavy one: the client has left
  std::string actor;                        // the name of the token it came with
  bool is_admin = false;                    // the role of that token

  // The first of that name.
  std::optional<std::string> Header(std::string_view name) const;
  std::optional<std::string> Query(std::string_view name) const;
};

// An answer without an end: the events after `after`, of one sweep or of all.
struct Follow {
  EventSeq after;
  std::optional<SweepId> sweep;
  std::shared_ptr<void> place;  // held for as long as the stream is open
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type;
  std::string body;

  // Instead of `body`: bytes that outlive the server, such as an embedded file.
  std::string_view static_body;

  // Instead of a body: the answer goes on with events.
  std::optional<Follow> follow;

  // Instead of an answer: there is none yet. The request is handled again when something has
  // happened, and at last with `patient` false.
  bool later = false;

  // Instead of an answer: the request takes long. It is handled again in the lane of heavy
  // requests.
  bool heavy = false;

  Response& Set(std::string name, std::string value) {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
};

}  // namespace attune::server
