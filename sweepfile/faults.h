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

constexpr size_t kMaxFaults = 100;  // listed of one text; a person mends the first ones anyway
constexpr size_t kMaxSentenceBytes = 2000;  // of one of them, which may quote the text

Fault MakeFault(const Place& place, Mark mark, std::string message, std::string suggestion = "");

// Collects what is wrong with a text while all of it is read. Beyond kMaxFaults it only counts.
class Faults {
 public:
  // `unlisted`: faults that are known and are not in `out`.
  explicit Faults(std::vector<Fault>& out, size_t unlisted = 0) : out_(out), unlisted_(unlisted) {}

  void Add(const Place& place, Mark mark, std::string message, std::string suggestion = "");
  void AtValue(const Spot& spot, std::string message, std::string suggestion = "");

  // With the nearest of the known words as the suggestion. To list the words and to compare them
  // takes time, so it is done only for faults that are listed, and for so long.
  using Words = std::function<std::vector<std::string>()>;
  void AddMisspelt(const Place& place, Mark mark, std::string message, std::string_view word,
                   const Words& known);

  // Where full() says that no fault is listed any more, and to make one takes time.
  void AddUnlisted() { ++unlisted_; }

  size_t count() const { return out_.size() + unlisted_; }
  size_t unlisted() const { return unlisted_; }
  bool full() const { return out_.size() >= kMaxFaults; }

  // After the last fault: the last one that is listed becomes a note of how many are not.
  void Close();

 private:
  std::vector<Fault>& out_;
  size_t unlisted_;
  size_t suggestions_ = 0;
};

}  // namespace attune::sweepfile
