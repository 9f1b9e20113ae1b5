#include "core/log/sweep_keys.h"

#include <algorithm>
#include <array>

#include "core/log/event_row.h"
#include "core/log/fields.h"

namespace attune {
namespace {

// ---- every field has a row -------------------------------------------------------------------

template <auto pointer>
constexpr char kMark = 0;  // its address identifies the member pointer

template <class Struct, class Member, class Owner>
constexpr bool IsMemberOf(Member Owner::*) {
  return std::is_same_v<Struct, Owner>;
}

template <class Struct, RowKind kind, auto... path>
constexpr size_t MarkFields(const Row<kind, path...>*, const char** marks) {
  size_t count = 0;
  ((IsMemberOf<Struct>(path) ? void(marks[count++] = &kMark<path>) : void()), ...);
  return count;
}

// The number of fields of `Struct` that the rows name.
template <class Struct, class... Rows>
constexpr size_t CountNamed(const std::tuple<Rows...>*) {
  std::array<const char*, 8 * sizeof...(Rows)> marks{};
  size_t count = 0;
  ((count += MarkFields<Struct>(static_cast<const Rows*>(nullptr), &marks[count])), ...);
  size_t distinct = 0;
  for (size_t i = 0; i < count; ++i) {
    bool is_new = true;
    for (size_t j = 0; j < i; ++j) is_new = is_new && marks[i] != marks[j];
    distinct += is_new ? 1 : 0;
  }
  return distinct;
}

// Whether the rows of Table name every field of each of these structs.
template <class Table, class... Structs>
constexpr bool NamesAll() {
  using Rows = std::remove_cvref_t<decltype(Keys(std::type_identity<Table>()).rows)>;
  return ((CountMembers<Structs>() == CountNamed<Structs>(static_cast<const Rows*>(nullptr))) &&
          ...);
}

static_assert(NamesAll<SweepSpec, SweepSpec>(), "a field of SweepSpec has no row");
static_assert(NamesAll<SweepSpec, Program>(), "a field of Program has no row");
static_assert(NamesAll<SweepSpec, AlgorithmSpec>(), "a field of AlgorithmSpec has no row");
static_assert(NamesAll<SweepSpec, GangSpec, Resources>(), "a field of GangSpec has no row");
static_assert(NamesAll<SweepSpec, CheckpointPolicy>(), "a field of CheckpointPolicy has no row");
static_assert(NamesAll<SweepSpec, FailurePolicy>(), "a field of FailurePolicy has no row");
static_assert(NamesAll<SweepSpec, StopPolicy>(), "a field of StopPolicy has no row");
static_assert(NamesAll<Objective, Objective>(), "a field of Objective has no row");
static_assert(NamesAll<Constraint, Constraint>(), "a field of Constraint has no row");
static_assert(NamesAll<LogPolicy, LogPolicy>(), "a field of LogPolicy has no row");
static_assert(NamesAll<CodeSpec, CodeSpec>(), "a field of CodeSpec has no row");
static_assert(NamesAll<PatchedCode, PatchedCode>(), "a field of PatchedCode has no row");
static_assert(NamesAll<EnvironmentSpec, EnvironmentSpec>(),
              "a field of EnvironmentSpec has no row");
static_assert(NamesAll<DataSpec, DataSpec>(), "a field of DataSpec has no row");
static_assert(NamesAll<Plateau, Plateau>(), "a field of Plateau has no row");
static_assert(NamesAll<Threshold, Threshold>(), "a field of Threshold has no row");

// ---- snapshots -------------------------------------------------------------------------------

template <class T, class A>
void ArchiveFields(A& archive, Like<A, T>& owner) {
  ForEachField<T>([&](const auto& row) { archive(row.FieldIn(owner)); });
}

}  // namespace

template <class A>
void Fields(A& archive, Like<A, Constraint>& constraint) {
  ArchiveFields<Constraint>(archive, constraint);
}
template <class A>
void Fields(A& archive, Like<A, LogPolicy>& policy) {
  ArchiveFields<LogPolicy>(archive, policy);
}
void Fields(ArchiveWriter& archive, const SweepSpec& spec) {
  ArchiveFields<SweepSpec>(archive, spec);
}
void Fields(ArchiveReader& archive, SweepSpec& spec) { ArchiveFields<SweepSpec>(archive, spec); }

}  // namespace attune
