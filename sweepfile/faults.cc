#include "sweepfile/faults.h"

#include <utility>

#include "base/message_limits.h"
#include "sweepfile/reader.h"
#include "sweepfile/suggest.h"

namespace attune::sweepfile {
namespace {

// Only the first faults get suggestions. Comparing 1,000 words for 100 faults would take a second.
constexpr size_t kMaxSuggestions = 20;

}  // namespace

Fault MakeFault(const Place& place, Mark mark, std::string message, std::string suggestion) {
  return {.path = place.Path(),
          .pointer = place.Pointer(),
          .message = CutEnd(message, kMaxSentenceBytes),
          .suggestion = std::move(suggestion),
          .line = mark.line,
          .column = mark.column};
}

void Faults::Add(const Place& place, Mark mark, std::string message, std::string suggestion) {
  if (full()) return AddUnlisted();
  out_.push_back(MakeFault(place, mark, std::move(message), std::move(suggestion)));
}

void Faults::AtValue(const Spot& spot, std::string message, std::string suggestion) {
  Add(spot.place, spot.ValueMark(), std::move(message), std::move(suggestion));
}

void Faults::AddMisspelt(const Place& place, Mark mark, std::string message, std::string_view word,
                         const Words& known) {
  if (full()) return AddUnlisted();
  const bool compares = suggestions_ < kMaxSuggestions;
  if (compares) ++suggestions_;
  Add(place, mark, std::move(message), compares ? Suggest(word, known()) : "");
}

void Faults::Close() {
  if (unlisted_ == 0) return;
  const size_t more = std::exchange(unlisted_, 0) + 1;
  Fault& last = out_.back();
  last = {.path = "",
          .pointer = "",
          .message =
              "and " + std::to_string(more) + " more errors, which are not listed; fix these first",
          .suggestion = "",
          .line = last.line,
          .column = last.column};
}

}  // namespace attune::sweepfile
