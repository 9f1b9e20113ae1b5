#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sweepfile/place.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {

struct Spot;

struct Mark {
  int line = 1;    // from 1
  int column = 1;  // from 1, in characters
};

constexpr size_t kMaxFaults = 100;          // listed for one text
constexpr size_t kMaxSentenceBytes = 2000;  // of one fault, which may quote the text

Fault MakeFault(const Place& place, Mark mark, std::string message, std::string suggestion = "");

// Collects the faults of a text. After kMaxFaults, it only counts them.
class Faults {
 public:
  // `unlisted`: number of earlier faults that are not in `out`.
  explicit Faults(std::vector<Fault>& out, size_t unlisted = 0) : out_(out), unlisted_(unlisted) {}

  void Add(const Place& place, Mark mark, std::string message, std::string suggestion = "");
  void AtValue(const Spot& spot, std::string message, std::string suggestion = "");

  // Suggests the known word that is nearest to `word`. Listing and comparing words takes time, so
  // this is done only for a limited number of faults.
  using Words = std::function<std::vector<std::string>()>;
  void AddMisspelt(const Place& place, Mark mark, std::string message, std::string_view word,
                   const Words& known);

  // Counts a fault. Use it if full() is true and making the fault would take time.
  void AddUnlisted() { ++unlisted_; }

  size_t count() const { return out_.size() + unlisted_; }
  size_t unlisted() const { return unlisted_; }
  bool full() const { return out_.size() >= kMaxFaults; }

  // Must be called after the last fault. If some faults are not listed, the last one in the list
  // becomes a note with their number.
  void Close();

 private:
  std::vector<Fault>& out_;
  size_t unlisted_;
  size_t suggestions_ = 0;
};

}  // namespace attune::sweepfile
