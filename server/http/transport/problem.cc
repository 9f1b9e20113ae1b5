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

rest::Problem MakeProblem(rest::ProblemType type, std::string detail) {
  const rest::ProblemRow& row = rest::kProblems[static_cast<size_t>(type)];
  return {.type = row.type, .title = row.title, .status = row.status, .detail = std::move(detail)};
}

Response AnswerWith(const rest::Problem& problem) {
  Response response{.status = static_cast<int>(problem.status),
                    .content_type = "application/problem+json"};
  response.body = Dump(rest::ToJson(problem));
  response.Set("Cache-Control", "no-store");
  return response;
}

}  // namespace

Response Problem(rest::ProblemType type, std::string detail, std::vector<rest::Fault> faults) {
  rest::Problem problem = MakeProblem(type, std::move(detail));
  if (!faults.empty()) problem.errors = std::move(faults);
  return AnswerWith(problem);
}

Response CodeRequired(std::string detail, rest::RequiredCode code) {
  rest::Problem problem = MakeProblem(rest::ProblemType::kCodeRequired, std::move(detail));
  problem.code = std::move(code);
  return AnswerWith(problem);
}

Response Problem(const Error& error) {
  Response response = Problem(TypeOf(error.code), error.message);
  if (error.code == ErrorCode::kUnavailable) response.Set("Retry-After", "1");
  return response;
}

}  // namespace attune::server
