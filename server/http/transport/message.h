#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/ids.h"

// Requests and answers as the handlers see them. Only wire/exchange.cc knows the HTTP library.
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
  int unread = 0;       // the status that says why the body was not read; 0: it was
  bool secure = false;  // it came by TLS
  bool patient = true;  // whether an answer may be put off (Response::later)
  std::string actor;    // the name of the token it came with

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

  Response& Set(std::string name, std::string value) {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
};

}  // namespace attune::server
