#include "server/http/transport/problem.h"

#include <utility>

#include "base/result.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

rest::ProblemType TypeOf(ErrorCode code) {
  using enum rest::ProblemType;
  switch (code) {
    case ErrorCode::kInvalid:
      return kInvalidRequest;
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kConflict:
      return kConflict;
    case ErrorCode::kDenied:
      return kDenied;
    case ErrorCode::kUnavailable:
      return kUnavailable;
    case ErrorCode::kStorageFull:
      return kStorageFull;
    case ErrorCode::kUnsynced:
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      return kInternal;
  }
  return kInternal;
}

}  // namespace

Response Problem(rest::ProblemType type, std::string detail, std::vector<rest::Fault> faults) {
  const rest::ProblemRow& row = rest::kProblems[static_cast<size_t>(type)];
  rest::Problem problem{
      .type = row.type, .title = row.title, .status = row.status, .detail = std::move(detail)};
  if (!faults.empty()) problem.errors = std::move(faults);
  Response response{.status = row.status, .content_type = "application/problem+json"};
  response.body = Dump(rest::ToJson(problem));
  response.Set("Cache-Control", "no-store");
  return response;
}

Response Problem(const Error& error) {
  Response response = Problem(TypeOf(error.code), error.message);
  if (error.code == ErrorCode::kUnavailable) response.Set("Retry-After", "1");
  return response;
}

}  // namespace attune::server
