#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/log/command.h"
#include "server/folder/code_storage.h"
#include "server/http/answers/answers.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int kSweepsPageMax = 1'000;
inline constexpr int kSweepsPageDefault = 100;
inline constexpr int kDeletionDelayMaxSeconds = 86'400;
inline constexpr int kLineagePageMax = 10'000;
inline constexpr int kActivityPageMax = 1'000;
inline constexpr int kActivityPageDefault = 100;

// Handles requests for sweeps: creation, reads and control. Any thread.
class Sweeps {
 public:
  // All arguments must outlive the object. `code` is null if the server keeps no code.
  Sweeps(Backend& backend, Reader& reader, const Answers& answers, const Algorithms& algorithms,
         CodeStorage* code, const std::optional<GpuHourPrice>& price)
      : backend_(backend),
        reader_(reader),
        answers_(answers),
        algorithms_(algorithms),
        code_(code),
        price_(price) {}

  Response Create(const Request& request, const Target& target);
  Response Validate(const Request& request, const Target& target);
  Response List(const Request& request, const Target& target);
  Response Get(const Request& request, const Target& target);
  Response Resolved(const Request& request, const Target& target);
  Response Curves(const Request& request, const Target& target);  // in curves.cc
  Response Importance(const Request& request, const Target& target);
  Response Cost(const Request& request, const Target& target);
  Response Failures(const Request& request, const Target& target);
  Response Lineage(const Request& request, const Target& target);
  Response Activity(const Request& request, const Target& target);

  // In sweep_control.cc. Each answer describes the effect of the request.
  Response Pause(const Request& request, const Target& target);
  Response Resume(const Request& request, const Target& target);
  Response Stop(const Request& request, const Target& target);
  Response Kill(const Request& request, const Target& target);
  Response Extend(const Request& request, const Target& target);
  Response Edit(const Request& request, const Target& target);
  Response Annotate(const Request& request, const Target& target);
  Response Delete(const Request& request, const Target& target);
  Response Undelete(const Request& request, const Target& target);

 private:
  std::optional<Response> RefuseUndefinedSecrets(const SweepSpec& spec);
  // Gives a sweep that names no object store the server's, and checks that it can be used.
  Status ChooseStore(SweepSpec& spec);
  Response RequireCode(const Request& request, const CodeSpec& code);
  Status ApplyPatches(SweepSpec& spec, std::vector<std::shared_ptr<void>>& kept);
  Result<std::vector<WarmStart>> WarmStartsOf(const SweepSpec& spec);
  Result<std::optional<SweepId>> FindRequested(const std::string& key);
  Response AnswerScheduled(SweepId id);
  Response AnswerCreated(const Request& request, SweepId id);
  Response CurvesAsBytes(const Request& request, const SweepRow& sweep, const std::string& metric);
  Result<SweepId> CreateOrFind(CreateSweep command, const std::string& actor);

  Backend& backend_;
  Reader& reader_;
  const Answers& answers_;
  const Algorithms& algorithms_;
  CodeStorage* const code_;
  const std::optional<GpuHourPrice>& price_;
  std::mutex annotating_;  // two changes of tags at once do not undo each other
};

}  // namespace attune::server
