#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/log/key.h"
#include "core/log/labels.h"

// The row of a key: the field of a struct that a key of the sweep file sets, and a Key that
// describes it. A row names the field by member pointers:
//
//   KeyRow<&SweepSpec::stop, &StopPolicy::max_trials>(
//       {.name = "stop.max_trials", .help = "Maximum number of trials", .editable = true})
//
// If the row does not give the type, the range or the default, they come from the field. Parsing,
// the JSON of the log and of REST, the resolved file, snapshots, edits, the JSON schema and the
// tables of docs/reference/sweep-file.md derive from the rows of core/log/sweep_keys.h.
namespace attune {

enum class RowKind {
  kKey,        // everything derives from the row
  kByHand,     // the row only documents the key; other code reads, writes and compares it
  kPart,       // a field that belongs to the key of another row; other code handles it, too
  kEntryName,  // the field is the name of the entry: the metric of stop.threshold.NAME
};

template <auto first, auto... rest>
struct PathTraits : PathTraits<first> {};
template <class Member, class Struct, Member Struct::*first>
struct PathTraits<first> {
  using Owner = Struct;
};

template <RowKind kind, auto... path>
struct Row {
  static constexpr RowKind kKind = kind;

  Key key;

  explicit Row(Key its_key) : key(std::move(its_key)) {
    if constexpr (kind == RowKind::kKey) {
      const typename PathTraits<path...>::Owner initial{};
      CompleteKey(key, FieldIn(initial));
    }
  }

  // The field in `owner`, which is const or not.
  template <class Owner>
  static auto& FieldIn(Owner& owner) {
    return (owner.*....*path);
  }
};

template <auto... path>
using KeyRow = Row<RowKind::kKey, path...>;
template <auto... path>
using HandRow = Row<RowKind::kByHand, path...>;
template <auto... path>
using PartRow = Row<RowKind::kPart, path...>;
template <auto path>
using EntryNameRow = Row<RowKind::kEntryName, path>;

// The keys of the map that sets one struct.
template <class... Rows>
struct KeyTable {
  std::string section;  // the path of the map in the file, NAME for any name: stop.threshold.NAME
  std::string help;     // one sentence, without a full stop
  std::vector<std::string> any_of;  // at least one of these keys must be given; empty: no such rule
  std::tuple<Rows...> rows;

  KeyTable(std::string its_section, std::string its_help, std::vector<std::string> its_any_of,
           Rows... its_rows)
      : section(std::move(its_section)),
        help(std::move(its_help)),
        any_of(std::move(its_any_of)),
        rows(std::move(its_rows)...) {}
};

// A struct that has a table: `Keys(std::type_identity<T>())`.
template <class T>
concept HasKeys = requires {
  Keys(std::type_identity<T>()).rows;
};

template <HasKeys T, class F>
void ForEachRow(F&& visit) {
  std::apply([&](const auto&... row) { (visit(row), ...); }, Keys(std::type_identity<T>()).rows);
}

// Visits the rows of kind kKey.
template <HasKeys T, class F>
void ForEachKey(F&& visit) {
  ForEachRow<T>([&]<RowKind kind, auto... path>(const Row<kind, path...>& row) {
    if constexpr (kind == RowKind::kKey) visit(row);
  });
}

// Visits the rows of all kinds that name a field.
template <HasKeys T, class F>
void ForEachField(F&& visit) {
  ForEachRow<T>([&]<RowKind kind, auto... path>(const Row<kind, path...>& row) {
    if constexpr (sizeof...(path) > 0) visit(row);
  });
}

// The name of an entry of a map: the metric of stop.threshold.NAME. REQUIRES: IsEntry<T>().
template <class T>
auto& EntryNameOf(T& entry) {
  using Rows =
      std::remove_cvref_t<decltype(Keys(std::type_identity<std::remove_const_t<T>>()).rows)>;
  static_assert(std::tuple_element_t<0, Rows>::kKind == RowKind::kEntryName, "it is the first row");
  return std::tuple_element_t<0, Rows>::FieldIn(entry);
}

// Whether values of T are the entries of a map whose keys are their names.
template <HasKeys T>
constexpr bool IsEntry() {
  using Rows = std::remove_cvref_t<decltype(Keys(std::type_identity<T>()).rows)>;
  return std::tuple_element_t<0, Rows>::kKind == RowKind::kEntryName;
}

// ---- lists and maps --------------------------------------------------------------------------

inline void CompleteKey(Key& key, const std::vector<std::string>&) { key.type = KeyType::kTexts; }
inline void CompleteKey(Key& key, const std::vector<SweepId>&) { key.type = KeyType::kTexts; }
inline void CompleteKey(Key& key, const std::vector<std::pair<std::string, std::string>>&) {
  key.type = KeyType::kTextMap;
}
inline void CompleteKey(Key& key, const Requirements&) { key.type = KeyType::kChoices; }
template <HasKeys T>
void CompleteKey(Key& key, const std::optional<T>&) {
  key.type = KeyType::kMap;
  key.element = Keys(std::type_identity<T>()).section;
}
template <HasKeys T>
void CompleteKey(Key& key, const std::vector<T>&) {
  key.type = IsEntry<T>() ? KeyType::kMap : KeyType::kSections;
  key.element = Keys(std::type_identity<T>()).section;
}

}  // namespace attune
