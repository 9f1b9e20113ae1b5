#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "server/http/message.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {

// Answers in application/problem+json (RFC 9457).
Response Problem(int status, std::string detail);
Response Problem(const Error& error);  // by its code
Response Problem(int status, std::string detail, const std::vector<sweepfile::Fault>& faults);

// 404, 409, … for a code; kInvalid is 400.
int StatusOf(ErrorCode code);

}  // namespace attune::server
