#pragma once

#include "core/algorithms/algorithms.h"
#include "server/http/answers/answers.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// How people steer sweeps. Each answer says what follows from the request. Any thread.
class SweepControl {
 public:
  // All outlive the object.
  SweepControl(Backend& backend, Reader& reader, const Answers& answers,
               const Algorithms& algorithms)
      : backend_(backend), reader_(reader), answers_(answers), algorithms_(algorithms) {}

  Response Pause(const Request& request, const Target& target);
  Response Resume(const Request& request, const Target& target);
  Response Stop(const Request& request, const Target& target);
  Response Kill(const Request& request, const Target& target);
  Response Extend(const Request& request, const Target& target);
  Response Edit(const Request& request, const Target& target);
  Response Delete(const Request& request, const Target& target);

 private:
  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
  const Algorithms& algorithms_;
};

}  // namespace attune::server
