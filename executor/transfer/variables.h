#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attune/v1/executor.pb.h"

namespace attune::agent {

// The variables of an environment in a message. Some values may be secrets.
inline std::vector<std::pair<std::string, std::string>> ToVariables(
    const google::protobuf::RepeatedPtrField<v1::NamedValue>& values) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const v1::NamedValue& value : values)
    variables.emplace_back(value.name(), value.value().text());
  return variables;
}

}  // namespace attune::agent
