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

// Limits after aliases are replaced by their values. A node with an anchor counts twice.
constexpr size_t kMaxNodes = 100'000;
constexpr size_t kMaxTextBytes = 2 << 20;  // of all keys and scalars

struct MapEntry;

// A node of a YAML document with its position in the text. A scalar keeps the original text. Its
// value depends on the expected type (scalar.h).
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: quoted, a block, or tagged !!str, so always text
  Mark mark;
  std::vector<Node> items;        // kList
  std::vector<MapEntry> entries;  // kMap: in the order of the file, with distinct keys

  const MapEntry* Find(std::string_view key) const;  // null: not a map, or no such key
};

struct MapEntry {
  std::string key;
  Mark mark;
  Node value;
};

struct Document {
  std::optional<Node> root;   // absent if the text could not be read to its end
  std::vector<Fault> faults;  // syntax, duplicate keys, limits; at most kMaxFaults
  size_t unlisted = 0;        // number of further faults
};

// Reads one YAML document. Anchors and aliases work. Faults are: tags except !!str, keys that are
// not scalars, and a second document.
Document ReadDocument(std::string_view text);

// The mark of the deepest existing node on the path to `place`.
Mark Locate(const Node& root, const Place& place);

// Like ParseSweep, for a document that was already read.
Parsed ParseDocument(Document document, const ParseOptions& options);

}  // namespace attune::sweepfile
