#include "server/http/routes/service/service.h"

#include <string>

#include "base/result.h"
#include "server/http/answers/answers.h"
#include "server/http/answers/render.h"
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
  return Render(rest::Version{.version = version_, .api = "v1", .time = FormatTime(WallTime())});
}

Response Service::Session(const Request& request, const Target&) {
  return Render(
      rest::Session{.name = request.actor, .role = request.is_admin ? "admin" : "viewer"});
}

Response Service::Contract(const Request&, const Target&) {
  Response response{.content_type = "application/json"};
  response.static_body = rest::kOpenApi;
  return response;
}

}  // namespace attune::server
