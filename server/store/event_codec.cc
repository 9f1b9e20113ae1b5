#include "server/store/event_codec.h"

#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/result.h"
#include "core/log/fields.h"
#include "json/parse.h"
#include "server/store/json.h"
#include "server/store/json_archive.h"
#include "server/store/measured_form.h"

namespace attune::server {
namespace {

template <class T>
Fact Read(const RowColumns& row, const Json& json) {
  T fact{};
  JsonReader archive(json, row);
  Fields(archive, fact);
  return fact;
}

struct Decoder {
  std::string_view kind;
  int version;
  Fact (*read)(const RowColumns&, const Json&);
};

template <class... T>
constexpr auto MakeDecoders(const std::variant<T...>*) {
  return std::array{Decoder{T::kRow.info.kind, T::kRow.info.version, Read<T>}...};
}

constexpr auto kDecoders = MakeDecoders(static_cast<const AnyFact*>(nullptr));

Error Corrupt(const StoredFact& stored, const std::string& what) {
  return {ErrorCode::kCorrupt, "event of kind " + std::string(stored.kind) + ": " + what};
}

bool IsMeasured(std::string_view kind) {
  return kind == TrialReported::kRow.info.kind || kind == MetricsLogged::kRow.info.kind;
}

// Names the elements of measured values that are not in the exact form of WriteMeasured.
Json WithNames(std::string_view kind, const Json& list) {
  if (kind == MetricsLogged::kRow.info.kind)
    return {{"attempt", list.at(0)},
            {"number", list.at(1)},
            {"step", list.at(2)},
            {"metrics", list.at(3)}};
  return {{"attempt", list.at(0)},
          {"step", list.at(1)},
          {"seconds", list.at(2)},
          {"metrics", list.at(3)},
          {"waits", list.size() > 4 ? list.at(4) : Json(false)}};
}

std::optional<Fact> DecodeQuickly(const StoredFact& stored) {
  if (!IsMeasured(stored.kind)) return std::nullopt;
  const bool is_report = stored.kind == TrialReported::kRow.info.kind;
  const EventInfo& info = is_report ? TrialReported::kRow.info : MetricsLogged::kRow.info;
  if (stored.version != info.version) return std::nullopt;
  if (!stored.sweep || !stored.trial) return std::nullopt;
  MeasuredScanner scanner(stored.payload);
  Metrics metrics;
  while (scanner.NextMetric()) metrics.emplace_hint(metrics.end(), scanner.name(), scanner.value());
  if (!scanner.ok()) return std::nullopt;
  const AttemptId attempt{{*stored.sweep, *stored.trial}, scanner.attempt()};
  if (!is_report)
    return Fact(MetricsLogged{attempt, scanner.count(), scanner.real(), std::move(metrics)});
  return Fact(TrialReported{attempt,
                            {.step = Step(scanner.count()),
                             .metrics = std::move(metrics),
                             .seconds = Seconds(scanner.real()),
                             .waits = scanner.waits()}});
}

}  // namespace

EncodedFact Encode(const Fact& fact) {
  EncodedFact encoded{.sweep = SweepOf(fact)};
  if (const auto trial = TrialOf(fact)) encoded.trial = trial->number;
  std::visit(
      [&]<class T>(const T& known) {
        encoded.kind = T::kRow.info.kind;
        encoded.version = T::kRow.info.version;
        if constexpr (std::is_same_v<T, TrialReported> || std::is_same_v<T, MetricsLogged>) {
          WriteMeasured(known, encoded.payload);
        } else {
          Json json = Json::object();
          JsonWriter archive(json);
          Fields(archive, known);
          encoded.payload = Dump(json);
        }
      },
      fact);
  return encoded;
}

Result<Fact> Decode(const StoredFact& stored) {
  if (auto measured = DecodeQuickly(stored)) return *std::move(measured);
  for (const Decoder& decoder : kDecoders) {
    if (decoder.kind != stored.kind) continue;
    if (stored.version > decoder.version)
      return Corrupt(stored, "version " + std::to_string(stored.version) +
                                 " is newer than this program, which reads up to " +
                                 std::to_string(decoder.version) +
                                 "; use the version of Attune that wrote it");
    try {
      Json json = ParseJsonOrThrow<Json>(stored.payload);
      if (IsMeasured(stored.kind)) json = WithNames(stored.kind, json);
      return decoder.read({stored.sweep, stored.trial}, json);
    } catch (const Json::exception& error) {
      return Corrupt(stored, error.what());
    }
  }
  return Corrupt(stored,
                 "this program does not know the kind; use the version of Attune that wrote it");
}

}  // namespace attune::server
