#pragma once

#include <string>

#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Executors, and the gangs that find no room on them. Any thread.
class Executors {
 public:
  // The backend outlives the object.
  explicit Executors(Backend& backend) : backend_(backend) {}

  Response List(const Request& request, const Target& target);
  Response Demands(const Request& request, const Target& target);
  // The answers to these two say what follows from the request.
  Response Drain(const Request& request, const Target& target);
  Response Resume(const Request& request, const Target& target);

 private:
  Response Answer(const std::string& name, const std::string& effect);

  Backend& backend_;
};

}  // namespace attune::server
