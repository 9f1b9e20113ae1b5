#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/command.h"
#include "server/http/answers/answers.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {

inline constexpr int kSweepsPageMax = 1'000;
inline constexpr int kSweepsPageDefault = 100;

// Handles requests for sweeps: creation, reads and control. Any thread.
class Sweeps {
 public:
  // All arguments must outlive the object.
  Sweeps(Backend& backend, Reader& reader, const Answers& answers, const Algorithms& algorithms)
      : backend_(backend), reader_(reader), answers_(answers), algorithms_(algorithms) {}

  Response Create(const Request& request, const Target& target);
  Response Validate(const Request& request, const Target& target);
  Response List(const Request& request, const Target& target);
  Response Get(const Request& request, const Target& target);
  Response Resolved(const Request& request, const Target& target);
  Response Curves(const Request& request, const Target& target);
  Response Importance(const Request& request, const Target& target);

  // In sweep_control.cc. Each answer describes the effect of the request.
  Response Pause(const Request& request, const Target& target);
  Response Resume(const Request& request, const Target& target);
  Response Stop(const Request& request, const Target& target);
  Response Kill(const Request& request, const Target& target);
  Response Extend(const Request& request, const Target& target);
  Response Edit(const Request& request, const Target& target);
  Response Delete(const Request& request, const Target& target);

 private:
  sweepfile::Parsed Parse(const Request& request) const;
  std::optional<Response> RefuseUndefinedSecrets(const SweepSpec& spec);
  Result<std::vector<WarmStart>> WarmStartsOf(const SweepSpec& spec);
  Result<std::optional<SweepId>> FindRequested(const std::string& key);
  Response AnswerCreated(const Request& request, SweepId id);
  Result<SweepId> CreateOrFind(CreateSweep command, const std::string& actor);

  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
  const Algorithms& algorithms_;
};

}  // namespace attune::server
