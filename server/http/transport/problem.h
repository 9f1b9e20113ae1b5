#pragma once

#include <string>

#include "core/base/result.h"
#include "server/http/transport/message.h"
#include "server/store/json.h"

namespace attune::server {

// Answers in application/problem+json (RFC 9457).
//
// `errors`: the places of a body that are wrong, as the member `errors`; null: there is no such
// member.
Response Problem(int status, std::string detail, Json errors = nullptr);

// The problem for an error: its code gives the status. If the client may try again, the answer
// says when.
Response Problem(const Error& error);

}  // namespace attune::server
