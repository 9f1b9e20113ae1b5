#pragma once

#include "server/http/answers/answers.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// How people steer trials. Each answer says what follows from the request. Any thread.
class TrialControl {
 public:
  // All outlive the object.
  TrialControl(Backend& backend, Reader& reader, const Answers& answers)
      : backend_(backend), reader_(reader), answers_(answers) {}

  Response Enqueue(const Request& request, const Target& target);
  Response Kill(const Request& request, const Target& target);
  Response Retry(const Request& request, const Target& target);
  Response Continue(const Request& request, const Target& target);

 private:
  Response Reopen(const Request& request, const Target& target, Step until, bool from_start);

  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
};

}  // namespace attune::server
