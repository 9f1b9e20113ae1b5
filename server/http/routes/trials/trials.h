#pragma once

#include <cstdint>
#include <mutex>

#include "base/result.h"
#include "server/folder/code_storage.h"
#include "server/http/answers/answers.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kLoggedDefault = 1'000;
inline constexpr int kLoggedMax = 10'000;
inline constexpr int64_t kLogSliceMaxBytes = 1 << 20;

// Handles requests for trials: reads and control. Any thread.
class Trials {
 public:
  // All arguments must outlive the object. `code` may be null: then trials cannot have patches.
  Trials(Backend& backend, Reader& reader, const Answers& answers, CodeStorage* code)
      : backend_(backend), reader_(reader), answers_(answers), code_(code) {}

  Response List(const Request& request, const Target& target);
  Response Get(const Request& request, const Target& target);
  Response Explain(const Request& request, const Target& target);
  Response Environment(const Request& request, const Target& target);
  Response Logs(const Request& request, const Target& target);
  Response Logged(const Request& request, const Target& target);

  // In trial_control.cc. Each answer describes the effect of the request.
  Response Enqueue(const Request& request, const Target& target);
  Response Kill(const Request& request, const Target& target);
  Response Retry(const Request& request, const Target& target);
  Response Continue(const Request& request, const Target& target);
  Response Annotate(const Request& request, const Target& target);

 private:
  // Applies a patch to the code of a configuration.
  Result<TrialPatch> ApplyPatch(const SweepSpec& spec, const Config& config,
                                const std::string& text);
  Response Reopen(const Request& request, const Target& target, Step until, bool from_start);

  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
  CodeStorage* const code_;
  std::mutex annotating_;  // two changes of tags at once do not undo each other
};

}  // namespace attune::server
