#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"
#include "sweepfile/sweepfile.h"

// Problems (transport/problem.h) with the body of a request.
namespace attune::server {

// Refuses a body with these faults. The status is 400 if the text is not a document, and 422 if its
// contents are wrong. REQUIRES: at least one fault.
Response Refuse(const std::vector<sweepfile::Fault>& faults);

// Refuses a sweep file because of an error that was found after it was parsed. The status is 422,
// with the place at the beginning of the message. Other errors are answered by their code.
Response RefuseBody(const Error& error, std::string_view file);

// The problem for an error, by its code. An invalid command is a fault of the body: 422.
Response ProblemOfBody(const Error& error);

// Returns the refusal of a request if an earlier one had the same Idempotency-Key and another body;
// nullopt otherwise. `sweep` and `request_key`: see Reader::FindRequest. An empty key is never
// refused.
std::optional<Response> RefuseReusedKey(Reader& reader, SweepId sweep,
                                        const std::string& request_key);

// Like RefuseReusedKey, with the key of the earlier request.
std::optional<Response> RefuseOtherBody(const std::string& earlier, const std::string& request_key);

}  // namespace attune::server
