#include "server/http/routes/service/service.h"

#include <chrono>

#include "base/result.h"
#include "server/http/answers/answers.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"

namespace attune::server {

Response Service::Liveness(const Request&, const Target&) {
  return Render(rest::Health{.status = "live"});
}

Response Service::Readiness(const Request&, const Target&) {
  if (const Status ready = backend_.Ready(); !ready.ok())
    return Problem(Error{ErrorCode::kUnavailable, ready.error().message});
  return Render(rest::Health{.status = "ready"});
}

Response Service::Version(const Request&, const Target&) {
  // Clients compare this time with their clock.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Time time{std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
  return Render(rest::Version{.version = version_, .api = "v1", .time = FormatTime(time)});
}

Response Service::Contract(const Request&, const Target&) {
  Response response{.content_type = "application/json"};
  response.static_body = rest::kOpenApi;
  return response;
}

}  // namespace attune::server
