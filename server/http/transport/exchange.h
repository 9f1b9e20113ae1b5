#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "server/http/transport/message.h"

namespace attune::server {

// The bytes to write for one request, or how it continues.
struct Written {
  std::string bytes;             // head and body
  bool close = false;            // close the connection after `bytes`
  std::optional<Follow> follow;  // the answer continues with events, chunk by chunk
  bool postponed = false;        // nothing is written yet: see Response::postponed
  bool heavy = false;            // nothing is written yet: see Response::heavy
};

// How a request is handled. See the members of Request with these names.
struct Handling {
  bool patient = true;
  bool secure = false;
  bool heavy = false;
  std::stop_token left = {};
};

// A chunk of a chunked answer, and the last chunk.
std::string Chunk(std::string_view text);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Converts bytes to requests and answers to bytes, with the HTTP library. Any thread.
class Exchange {
 public:
  using Handler = std::function<Response(const Request&)>;

  // `handle` is called on the thread that calls Answer.
  explicit Exchange(Handler handle);
  ~Exchange();

  // Answers a request. `request` contains all bytes of one request, as Framing found them. It may
  // contain only the head if the handler does not need the body; the connection then ends.
  Written Answer(std::string_view request, const Handling& handling) const;

  // Writes an answer without parsing a request, for invalid requests or when the server is too
  // busy.
  static Written Refuse(const Response& response, bool close);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace attune::server
