#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "rest/contract.h"
#include "server/http/transport/limits.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Finds the end of a request in the bytes of a connection (RFC 9112). The HTTP library parses the
// complete request afterwards. Framing refuses everything that the library might read differently:
// a bare line feed, two lengths, a coding other than chunked.
class Framing {
 public:
  enum class State {
    kHead,   // the head is incomplete
    kBody,   // the head is complete, the body is not
    kWhole,  // the request ends at size()
    kBad,    // see fault(); the rest of the connection is unusable
  };

  struct Fault {
    rest::ProblemType type = rest::ProblemType::kMalformedRequest;
    std::string detail;
  };

  // `bytes` contains the request from its beginning, as far as it has arrived. It may only grow
  // between two calls.
  State Read(std::string_view bytes);

  // Valid from kBody on.
  size_t head_bytes() const { return head_bytes_; }
  bool chunked() const { return chunked_; }
  size_t length() const { return length_; }  // length of a body that is not chunked
  bool expects_continue() const { return expects_continue_; }
  // Method, target as sent, and headers; without body and parsed query.
  const Request& head() const { return head_; }

  size_t size() const { return end_; }           // REQUIRES: kWhole
  const Fault& fault() const { return fault_; }  // REQUIRES: kBad

 private:
  State Fail(rest::ProblemType type, std::string detail);
  State ReadHead(std::string_view bytes);
  State ReadBody(std::string_view bytes);
  State ReadChunks(std::string_view bytes);
  std::optional<Fault> Interpret();

  State state_ = State::kHead;
  size_t scanned_ = 0;  // bytes of the head, then of the chunks, that were already scanned
  size_t head_bytes_ = 0;
  size_t length_ = 0;
  size_t end_ = 0;
  size_t chunks_bytes_ = 0;  // length of the body without chunk framing
  bool chunked_ = false;
  bool last_chunk_ = false;
  bool expects_continue_ = false;
  Request head_;
  Fault fault_;
};

}  // namespace attune::server
