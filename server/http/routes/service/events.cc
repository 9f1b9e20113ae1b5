#include "server/http/routes/service/events.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {

Response Events::Stream(const Request& request, const Target&) {
  std::optional<SweepId> sweep;
  if (const auto text = request.Query("sweep"); text && !text->empty()) {
    const auto id = ParseSweepId(*text);
    if (!id.ok()) return Problem(id.error());
    if (const auto known = reader_.Sweep(*id); !known.ok()) return Problem(known.error());
    sweep = *id;
  }
  // A browser that reconnects sends its position, which takes precedence over the query of the
  // first request.
  Request place = request;
  if (const auto last = request.Header("Last-Event-ID"); last && !last->empty()) {
    place.query.erase("after");
    place.query.emplace("after", *last);
  }
  const auto after = IntegerQuery(place, "after", -1, 0, std::numeric_limits<int64_t>::max());
  if (!after.ok()) return Problem(after.error());
  const auto last = reader_.LastSeq();
  if (!last.ok()) return Problem(last.error());
  const EventSeq begin = *after < 0 ? *last : EventSeq(static_cast<uint64_t>(*after));
  if (begin > *last)
    return Problem(rest::ProblemType::kStreamAhead,
                   "the log ends with event " + std::to_string(last->value) + " and has no event " +
                       std::to_string(begin.value) +
                       ": a backup was restored; read the state again and begin a new stream");

  if (streams_->fetch_add(1) >= streams_max_) {
    streams_->fetch_sub(1);
    Response refusal = Problem(rest::ProblemType::kStreamLimit,
                               "there are already " + std::to_string(streams_max_) +
                                   " streams of events; close some pages");
    refusal.Set("Retry-After", "10");
    return refusal;
  }
  std::shared_ptr<void> taken(nullptr, [count = streams_](void*) { count->fetch_sub(1); });
  Response response{.content_type = "text/event-stream"};
  response.Set("Cache-Control", "no-store").Set("X-Accel-Buffering", "no");
  response.follow = Follow{.after = begin, .sweep = sweep, .place = std::move(taken)};
  return response;
}

}  // namespace attune::server
