#include "server/http/transport/problem.h"

#include <utility>

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

// kInvalid is 400.
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

}  // namespace

Response Problem(int status, std::string detail, Json errors) {
  Json problem = {{"type", "about:blank"},
                  {"title", Title(status)},
                  {"status", status},
                  {"detail", std::move(detail)}};
  if (!errors.is_null()) problem["errors"] = std::move(errors);
  Response response{.status = status, .content_type = "application/problem+json"};
  response.body = Dump(problem);
  response.Set("Cache-Control", "no-store");
  return response;
}

Response Problem(const Error& error) {
  Response response = Problem(StatusOf(error.code), error.message);
  if (error.code == ErrorCode::kUnavailable) response.Set("Retry-After", "1");
  return response;
}

}  // namespace attune::server
