#include "server/store/json.h"

namespace attune::server {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace attune::server
