#pragma once

#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int64_t kContentMaxBytes = 4 << 20;  // of a file, in one answer
// Where nothing is said: answers that fit a cache, and memory that need not be mapped anew each
// time, are four times as fast as the largest.
inline constexpr int64_t kContentDefaultBytes = 1 << 20;

// Checkpoints: reading what is known of them, and what is in them. Any thread.
class Checkpoints {
 public:
  // Both outlive the object.
  Checkpoints(Backend& backend, Reader& reader) : backend_(backend), reader_(reader) {}

  Response List(const Request& request, const Target& target);
  Response Get(const Request& request, const Target& target);
  // Part of a file, at most kContentMaxBytes: who wants more asks again, from where it is. So the
  // server holds no more of a checkpoint than a piece a reader, however slow that is.
  Response Content(const Request& request, const Target& target);
  // Drops it; twice is as good as once.
  Response Drop(const Request& request, const Target& target);

 private:
  Response Answer(const CheckpointId& id, int status, const std::string& effect);

  Backend& backend_;
  Reader& reader_;
};

}  // namespace attune::server
