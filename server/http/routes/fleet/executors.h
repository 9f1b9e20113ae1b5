#pragma once

#include <string>

#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"

namespace attune::server {

inline constexpr int kQueuePageDefault = 100;
inline constexpr int kQueuePageMax = 500;

// Handles requests for executors and for the gangs that find no free slots. Any thread.
class Executors {
 public:
  // The backend must outlive the object.
  explicit Executors(Backend& backend) : backend_(backend) {}

  Response List(const Request& request, const Target& target);
  Response Demands(const Request& request, const Target& target);
  // The gangs of all sweeps that wait, in order.
  Response Queue(const Request& request, const Target& target);
  // The answers to these two describe the effect of the request.
  Response Drain(const Request& request, const Target& target);
  Response Resume(const Request& request, const Target& target);

 private:
  Response Answer(const std::string& name, const std::string& effect);

  Backend& backend_;
};

}  // namespace attune::server
