#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "rest/contract.h"
#include "server/http/transport/message.h"

namespace attune::server {

// Answers of type application/problem+json (RFC 9457). The contract defines the status and title of
// each type. `faults` lists the faults of a body with their places.
Response Problem(rest::ProblemType type, std::string detail, std::vector<rest::Fault> faults = {});

// The problem of a sweep file with `code` whose snapshot the server does not have.
Response CodeRequired(std::string detail, rest::RequiredCode code);

// The problem for an error, by its code. If the client may try again, the answer says when.
Response Problem(const Error& error);

}  // namespace attune::server
