#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/ids.h"
#include "server/store/json.h"
#include "server/store/sqlite.h"

// Reads columns of the tables.
namespace attune::server {

inline TrialNumber TrialNumberAt(const sqlite::Rows& rows, int column) {
  return TrialNumber(static_cast<uint32_t>(rows.Integer(column)));
}

// Calls `read`, which reads columns of JSON. Returns the reason if a column is damaged.
template <class Read>
std::optional<std::string> FindDamage(Read read) {
  try {
    read();
  } catch (const Json::exception& error) {
    return std::string("a column of the database is damaged: ") + error.what();
  }
  return std::nullopt;
}

}  // namespace attune::server
