#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "rest/contract.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Answers in application/problem+json (RFC 9457). The contract has a row for each type: its status
// and its title. `faults`: what is wrong with a body, and where.
Response Problem(rest::ProblemType type, std::string detail, std::vector<rest::Fault> faults = {});

// The problem for an error, by its code. If the client may try again, the answer says when.
Response Problem(const Error& error);

}  // namespace attune::server
