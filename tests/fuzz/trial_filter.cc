#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/store/trials/filter_sql.h"
#include "server/store/trials/trial_filter.h"

// A filter must be refused with a position in it, or give SQL with balanced quotes that contains no
// text of the filter: each character outside parameters comes from a fixed set.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto filter = attune::server::ParseTrialFilter(text);
  if (!filter.ok()) {
    ATTUNE_CHECK(filter.error().code == attune::ErrorCode::kInvalid);
    ATTUNE_CHECK(filter.error().message.starts_with("filter: "));
    return 0;
  }
  attune::server::SqlParameters parameters;
  const std::string sql =
      attune::server::FilterSql(*filter, {.metric = "loss", .maximises = false}, parameters);
  ATTUNE_CHECK(!sql.empty());
  ATTUNE_CHECK(sql.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_ ,()'<>=?{}[]-") == sql.npos);
  return 0;
}
