#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "server/http/transport/message.h"

namespace attune::server {

// What is written for one request.
struct Written {
  std::string bytes;           // head and body
  bool close = false;          // the connection ends after them
  std::optional<Follow> goes;  // the head of an answer that goes on with events, chunk by chunk
  bool later = false;          // nothing is written yet: see Response::later
  bool heavy = false;          // nothing is written yet: see Response::heavy
};

// How a request is handled. See the members of Request with these names.
struct Handling {
  bool patient = true;
  bool secure = false;
  bool heavy = false;
  std::stop_token left = {};
};

// A part of an answer that goes on, and its end.
std::string Chunk(std::string_view text);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Between bytes and messages, by way of the HTTP library. Any thread.
class Exchange {
 public:
  using Handler = std::function<Response(const Request&)>;

  // `handle` is called on the thread that calls Answer.
  explicit Exchange(Handler handle);
  ~Exchange();

  // `request`: all the bytes of one, as Framing found them; or its head alone, where the handler
  // answers without the body. The connection ends then.
  Written Answer(std::string_view request, const Handling& handling) const;

  // An answer to bytes that are no request, or to one that nobody has the time to read.
  static Written Refuse(const Response& response, bool close);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace attune::server
