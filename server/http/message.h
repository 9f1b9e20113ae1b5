#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Requests and answers as the handlers see them. Only http_server.cc knows the HTTP library.
namespace attune::server {

struct CaseInsensitive {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};

struct Request {
  std::string method;  // HEAD arrives as GET; the transport leaves the body away
  std::string path;    // decoded
  std::multimap<std::string, std::string, std::less<>> query;
  std::multimap<std::string, std::string, CaseInsensitive> headers;
  std::string body;

  // The first of that name.
  std::optional<std::string> Header(std::string_view name) const;
  std::optional<std::string> Query(std::string_view name) const;
};

// Where an answer without an end is written to.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual bool Write(std::string_view text) = 0;  // false: the other end is gone
  virtual bool Alive() const = 0;                 // whether the other end is still there
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type;
  std::string body;

  // Instead of `body`: bytes that outlive the server, such as an embedded file.
  std::string_view static_body;

  // Instead of a body: called again and again, each time to write what there is or to wait a
  // little; false ends the answer.
  std::function<bool(Sink&)> stream;

  Response& Set(std::string name, std::string value) {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
};

}  // namespace attune::server
