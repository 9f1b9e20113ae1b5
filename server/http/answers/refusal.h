#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"
#include "sweepfile/sweepfile.h"

// Problems (transport/problem.h) that are about the body of a request.
namespace attune::server {

// Refuses a body with these faults: 400 for a text that is no document at all, 422 for one that
// says something wrong. REQUIRES: there are any.
Response Refuse(const std::vector<sweepfile::Fault>& faults);

// Refuses a sweep file for an error that was found after the file was read: 422, with the place in
// the file that the message begins with. Another error is answered by its code.
Response RefuseBody(const Error& error, std::string_view file);

// The problem for an error, by its code. An invalid command is the body's fault: 422.
Response ProblemOfBody(const Error& error);

// The refusal of a request whose Idempotency-Key came with another body before; nullopt if it did
// not. `sweep` and `request_key` are those of Reader::FindRequest. An empty key is never refused.
std::optional<Response> RefuseReusedKey(Reader& reader, SweepId sweep,
                                        const std::string& request_key);

// The same, for the key of the earlier request.
std::optional<Response> RefuseOtherBody(const std::string& earlier, const std::string& request_key);

}  // namespace attune::server
