#pragma once

#include <string>

#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Answers health checks, the version and questions about the session. Any thread.
class Service {
 public:
  // Both arguments must outlive the object.
  Service(Backend& backend, const std::string& version) : backend_(backend), version_(version) {}

  Response Liveness(const Request& request, const Target& target);
  Response Readiness(const Request& request, const Target& target);
  Response Version(const Request& request, const Target& target);

  // Returns the name and the role of the request's token.
  Response Session(const Request& request, const Target& target);

  Response Contract(const Request& request, const Target& target);

 private:
  Backend& backend_;
  const std::string& version_;
};

}  // namespace attune::server
