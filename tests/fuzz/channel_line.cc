#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "channel/line_reader.h"
#include "channel/messages.h"

// Reads a stream of lines in two pieces; the first byte sets the position of the cut. Each line
// must give an error that quotes it, or a message that can be stored and sent.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = stream.empty() ? 0 : data[0] % stream.size();
  attune::channel::LineReader lines;
  for (const std::string_view piece : {stream.substr(0, cut), stream.substr(cut)}) {
    lines.Append(piece);
    while (const auto line = lines.Next()) {
      ATTUNE_CHECK(line->find('\n') == std::string_view::npos);
      const auto message = attune::channel::ParseFromRank(*line);
      if (!message.ok()) {
        ATTUNE_CHECK(!message.error().message.empty());
      } else if (const auto* report = std::get_if<attune::channel::Report>(&message.value())) {
        ATTUNE_CHECK(std::isfinite(report->seconds) && report->seconds >= 0 && report->step >= 1);
        ATTUNE_CHECK(std::ssize(report->metrics) <= attune::channel::kMetricsMax);
      }
    }
  }
  return 0;
}
