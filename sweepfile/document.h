#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweepfile/faults.h"
#include "sweepfile/place.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxDepth = 32;  // of nested lists and maps
constexpr size_t kMaxKeyBytes = 1024;

// After aliases are replaced by what they stand for. What has an anchor counts twice.
constexpr size_t kMaxNodes = 100'000;
constexpr size_t kMaxTextBytes = 2 << 20;  // of all keys and scalars

struct MapEntry;

// A node of a YAML document with its place in the text. A scalar keeps the text that was written:
// what it means is decided by who asks for it (scalar.h).
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: quoted, a block, or tagged !!str; text whatever it looks like
  Mark mark;
  std::vector<Node> items;        // kList
  std::vector<MapEntry> entries;  // kMap: in the file's order, no key twice

  const MapEntry* Find(std::string_view key) const;  // null: not a map, or no such key
};

struct MapEntry {
  std::string key;
  Mark mark;
  Node value;
};

struct Document {
  std::optional<Node> root;   // absent when the text could not be read to its end
  std::vector<Fault> faults;  // syntax, duplicate keys, limits; at most kMaxFaults
  size_t unlisted = 0;        // faults that are not among them
};

// Reads one YAML document. Anchors and aliases work; other tags than !!str, keys that are not
// scalars and a second document are faults.
Document ReadDocument(std::string_view text);

// The mark of the deepest node on the way to `place` that is there.
Mark Locate(const Node& root, const Place& place);

// ParseSweep of a text that has been read.
Parsed ParseDocument(Document document, const ParseOptions& options);

}  // namespace attune::sweepfile
