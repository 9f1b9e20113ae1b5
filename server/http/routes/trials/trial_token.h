#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/transport/message.h"
#include "server/store/trials/trial_query.h"

namespace attune::server {

// The token of the page that begins after `position`. `list` names the list with its filter.
std::string TrialToken(const std::string& list, const TrialQuery& query,
                       const TrialPosition& position);

// The position of the request's token; nullopt: the first page. kInvalid for the token of another
// list, order or filter.
Result<std::optional<TrialPosition>> ParseTrialToken(const std::string& list,
                                                     const TrialQuery& query,
                                                     const Request& request);

}  // namespace attune::server
