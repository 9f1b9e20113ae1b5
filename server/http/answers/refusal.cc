#include "server/http/answers/refusal.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "server/http/transport/problem.h"

namespace attune::server {

Response Refuse(const std::vector<sweepfile::Fault>& faults) {
  ATTUNE_CHECK(!faults.empty());
  const bool whole = faults.size() == 1 && faults.front().pointer.empty();
  // If the list of faults was cut, the last one says how many are missing, and has no pointer.
  const bool cut = faults.size() > 1 && faults.back().pointer.empty();
  std::string detail = faults.size() == 1
                           ? sweepfile::FormatFault("line", faults.front())
                           : (cut ? "at least " : "") + std::to_string(faults.size()) + " errors";
  std::vector<rest::Fault> rendered;
  for (const sweepfile::Fault& fault : faults)
    rendered.push_back({.pointer = fault.pointer,
                        .line = fault.line,
                        .column = fault.column,
                        .message = sweepfile::Sentence(fault)});
  return Problem(whole ? rest::ProblemType::kMalformedBody : rest::ProblemType::kInvalidDocument,
                 std::move(detail), std::move(rendered));
}

Response RefuseBody(const Error& error, std::string_view file) {
  if (error.code != ErrorCode::kInvalid) return Problem(error);
  const auto fault = sweepfile::FaultOf(error, file);
  return fault ? Refuse({*fault}) : ProblemOfBody(error);
}

Response ProblemOfBody(const Error& error) {
  return error.code == ErrorCode::kInvalid
             ? Problem(rest::ProblemType::kInvalidDocument, error.message)
             : Problem(error);
}

std::optional<Response> RefuseReusedKey(Reader& reader, SweepId sweep,
                                        const std::string& request_key) {
  if (request_key.empty()) return std::nullopt;
  const auto earlier = reader.RequestKeyOf(sweep, request_key);
  if (!earlier.ok()) return Problem(earlier.error());
  return *earlier ? RefuseOtherBody(**earlier, request_key) : std::nullopt;
}

std::optional<Response> RefuseOtherBody(const std::string& earlier,
                                        const std::string& request_key) {
  if (earlier == request_key) return std::nullopt;
  return Problem(rest::ProblemType::kIdempotencyKeyReused,
                 "Idempotency-Key: an earlier request with this key had another body; use a new "
                 "key for each request");
}

}  // namespace attune::server
