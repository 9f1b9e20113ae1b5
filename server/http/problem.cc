#include "server/http/problem.h"

#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

std::string_view Title(int status) {
  switch (status) {
    case 400:
      return "Bad request";
    case 401:
      return "Not authenticated";
    case 403:
      return "Not allowed";
    case 404:
      return "Not found";
    case 405:
      return "Method not allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Request too large";
    case 414:
      return "Address too long";
    case 422:
      return "The body is wrong";
    case 503:
      return "Not available now";
    case 507:
      return "No space to write";
    default:
      return status < 500 ? "Bad request" : "Internal error";
  }
}

Response Answer(int status, Json problem) {
  Response response{.status = status, .content_type = "application/problem+json"};
  response.body = Dump(problem);
  response.Set("Cache-Control", "no-store");
  return response;
}

Json Members(int status, std::string detail) {
  return {{"type", "about:blank"},
          {"title", Title(status)},
          {"status", status},
          {"detail", std::move(detail)}};
}

}  // namespace

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kDenied:
      return 403;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kStorageFull:
      return 507;
    case ErrorCode::kUnsynced:
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

Response Problem(int status, std::string detail) {
  return Answer(status, Members(status, std::move(detail)));
}

Response Problem(const Error& error) {
  Response response = Problem(StatusOf(error.code), error.message);
  if (error.code == ErrorCode::kUnavailable) response.Set("Retry-After", "1");
  return response;
}

Response RefuseBody(const Error& error, std::string_view file) {
  if (error.code != ErrorCode::kInvalid) return Problem(error);
  const auto fault = sweepfile::FaultOf(error, file);
  return fault ? Refuse({*fault}) : ProblemOfBody(error);
}

Response ProblemOfBody(const Error& error) {
  return error.code == ErrorCode::kInvalid ? Problem(422, error.message) : Problem(error);
}

Response Problem(int status, std::string detail, const std::vector<sweepfile::Fault>& faults) {
  Json problem = Members(status, std::move(detail));
  problem["errors"] = Json::array();
  for (const sweepfile::Fault& fault : faults) {
    problem["errors"].push_back({{"pointer", fault.pointer},
                                 {"line", fault.line},
                                 {"column", fault.column},
                                 {"message", sweepfile::Sentence(fault)}});
  }
  return Answer(status, std::move(problem));
}

Response Refuse(const std::vector<sweepfile::Fault>& faults) {
  ATTUNE_CHECK(!faults.empty());
  const bool whole = faults.size() == 1 && faults.front().pointer.empty();
  const std::string detail = faults.size() == 1
                                 ? sweepfile::FormatFault("line", faults.front())
                                 : std::to_string(faults.size()) + " things are wrong";
  return Problem(whole ? 400 : 422, detail, faults);
}

}  // namespace attune::server
