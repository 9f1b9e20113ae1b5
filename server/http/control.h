#pragma once

#include "base/result.h"
#include "server/http/answers.h"
#include "server/http/backend.h"
#include "server/http/message.h"
#include "server/http/route.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr size_t kIdempotencyKeyMaxBytes = 255;

// The header Idempotency-Key, empty where there is none; kInvalid when it is too long.
Result<std::string> IdempotencyKey(const Request& request);

// What people steer: sweeps, trials, checkpoints and executors. Each answer says what follows from
// it.
class Control {
 public:
  // All outlive the object.
  Control(Backend& backend, Reader& reader, const Answers& answers, const Algorithms& algorithms)
      : backend_(backend), reader_(reader), answers_(answers), algorithms_(algorithms) {}

  Response PauseSweep(const Request& request, const Target& target);
  Response ResumeSweep(const Request& request, const Target& target);
  Response StopSweep(const Request& request, const Target& target);
  Response KillSweep(const Request& request, const Target& target);
  Response ExtendSweep(const Request& request, const Target& target);
  Response EditSweep(const Request& request, const Target& target);
  Response DeleteSweep(const Request& request, const Target& target);

  Response EnqueueTrial(const Request& request, const Target& target);
  Response KillTrial(const Request& request, const Target& target);
  Response RetryTrial(const Request& request, const Target& target);
  Response ContinueTrial(const Request& request, const Target& target);

  Response Pin(const Request& request, const Target& target);
  Response Unpin(const Request& request, const Target& target);

  Response DrainExecutor(const Request& request, const Target& target);
  Response ResumeExecutor(const Request& request, const Target& target);

 private:
  Response Reopen(const Request& request, const Target& target, Step until, bool from_start);
  Response SetPinned(const Request& request, const Target& target, bool pinned);
  Response AnswerExecutor(const std::string& name, const std::string& effect);

  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
  const Algorithms& algorithms_;
};

}  // namespace attune::server
