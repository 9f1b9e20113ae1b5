#pragma once

#include "attune/v1/executor.pb.h"
#include "object_storage/settings.h"

namespace attune::agent {

// The variables of an environment in a message. Some values may be secrets.
inline object_storage::Variables ToVariables(
    const google::protobuf::RepeatedPtrField<v1::NamedValue>& values) {
  object_storage::Variables variables;
  for (const v1::NamedValue& value : values)
    variables.emplace_back(value.name(), value.value().text());
  return variables;
}

}  // namespace attune::agent
