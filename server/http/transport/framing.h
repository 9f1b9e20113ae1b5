#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/transport/limits.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Where one request ends in the bytes of a connection (RFC 9112), and no more than that: what the
// bytes say is read by the HTTP library, once all of them are there. What it could read in another
// way than this does (a bare line feed, two lengths, a coding besides chunked) is refused.
class Framing {
 public:
  enum class State {
    kHead,   // the head is not whole yet
    kBody,   // the head is, the body is not
    kWhole,  // the request ends at size()
    kBad,    // see fault(); nothing after it can be read
  };

  struct Fault {
    int status = 400;
    std::string detail;
  };

  // `bytes` begins with the request and holds all that has come so far: it only grows between two
  // calls.
  State Read(std::string_view bytes);

  // From kBody on.
  size_t head_bytes() const { return head_bytes_; }
  bool chunked() const { return chunked_; }
  size_t length() const { return length_; }  // of a body that is not chunked
  bool expects_continue() const { return expects_continue_; }
  // Method, target as it was sent, and headers; without body and query.
  const Request& head() const { return head_; }

  size_t size() const { return end_; }           // REQUIRES: kWhole
  const Fault& fault() const { return fault_; }  // REQUIRES: kBad

 private:
  State Bad(int status, std::string detail);
  State ReadHead(std::string_view bytes);
  State ReadBody(std::string_view bytes);
  State ReadChunks(std::string_view bytes);
  std::optional<Fault> Interpret();

  State state_ = State::kHead;
  size_t seen_ = 0;  // of the head: nothing ends before here. Then: of the chunks, what was walked
  size_t head_bytes_ = 0;
  size_t length_ = 0;
  size_t end_ = 0;
  size_t chunks_bytes_ = 0;  // of the body, without its framing
  bool chunked_ = false;
  bool last_chunk_ = false;
  bool expects_continue_ = false;
  Request head_;
  Fault fault_;
};

}  // namespace attune::server
