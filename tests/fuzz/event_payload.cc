#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/store/event_codec.h"

// The input is the kind of a row (the first line), its version (one byte) and its payload. A
// payload that decodes must decode to the same event again after it is encoded.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view row(reinterpret_cast<const char*>(data), size);
  const size_t newline = row.find('\n');
  if (newline == std::string_view::npos || newline + 1 >= row.size()) return 0;
  const attune::server::StoredFact stored{.kind = row.substr(0, newline),
                                          .version = row[newline + 1] - '0',
                                          .sweep = attune::SweepId(1),
                                          .trial = attune::TrialNumber(2),
                                          .payload = row.substr(newline + 2)};
  const auto fact = attune::server::Decode(stored);
  if (!fact.ok()) {
    ATTUNE_CHECK(!fact.error().message.empty());
    return 0;
  }
  const auto first = attune::server::Encode(*fact);
  const auto again =
      attune::server::Decode({first.kind, first.version, first.sweep, first.trial, first.payload});
  ATTUNE_CHECK(again.ok());
  ATTUNE_CHECK(attune::server::Encode(*again).payload == first.payload);
  return 0;
}
