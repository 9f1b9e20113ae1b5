#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/store/sqlite.h"

namespace attune::server {

// The parameters of a statement that is built at run time. Text of a user becomes SQL only as the
// number of a parameter.
class SqlParameters {
 public:
  // Adds a parameter and returns its name in SQL, such as ?3.
  std::string Add(sqlite::Parameter value) {
    values_.push_back(std::move(value));
    return "?" + std::to_string(values_.size());
  }

  const std::vector<sqlite::Parameter>& values() const { return values_; }

 private:
  std::vector<sqlite::Parameter> values_;
};

}  // namespace attune::server
