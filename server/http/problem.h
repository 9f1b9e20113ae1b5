#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/http/message.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {

// Answers in application/problem+json (RFC 9457).
Response Problem(int status, std::string detail);
Response Problem(const Error& error);        // by its code; what may be tried again says when
Response ProblemOfBody(const Error& error);  // the same, but what is invalid is the body: 422
Response Problem(int status, std::string detail, const std::vector<sweepfile::Fault>& faults);

// A body with these faults: 400 for a text that is no document at all, 422 for one that says
// something wrong. REQUIRES: there are any.
Response Refuse(const std::vector<sweepfile::Fault>& faults);

// What was found wrong with a sweep file after it was read: 422, with the place in it where the
// message begins with that; another error by its code.
Response RefuseBody(const Error& error, std::string_view file);

// 404, 409, … for a code; kInvalid is 400.
int StatusOf(ErrorCode code);

}  // namespace attune::server
