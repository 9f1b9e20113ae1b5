#pragma once

#include "server/http/answers/answers.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int64_t kContentMaxBytes = 4 << 20;  // of a file, in one answer
// The default size of an answer. It fits the processor's cache and reuses memory, which makes it
// four times as fast as the maximum.
inline constexpr int64_t kContentDefaultBytes = 1 << 20;

// Handles requests for checkpoints: reads, contents, pins and drops. Any thread.
class Checkpoints {
 public:
  // All arguments must outlive the object.
  Checkpoints(Backend& backend, Reader& reader, const Answers& answers)
      : backend_(backend), reader_(reader), answers_(answers) {}

  Response List(const Request& request, const Target& target);
  Response Get(const Request& request, const Target& target);
  // Returns a part of a file, at most kContentMaxBytes. Clients request the next part themselves,
  // so the server holds at most one piece for each reader, even a slow one.
  Response Content(const Request& request, const Target& target);
  // Drops a checkpoint. Dropping it again has no effect.
  Response Drop(const Request& request, const Target& target);
  Response Pin(const Request& request, const Target& target);
  Response Unpin(const Request& request, const Target& target);

 private:
  Response SetPinned(const Request& request, const Target& target, bool pinned);
  Response Answer(const CheckpointId& id, int status, const std::string& effect);

  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
};

}  // namespace attune::server
