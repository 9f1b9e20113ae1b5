#include "server/store/event_codec.h"

#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/log/fact_fields.h"
#include "server/store/json.h"
#include "server/store/json_archive.h"
#include "server/store/report_form.h"

namespace attune::server {
namespace {

template <class T>
constexpr int VersionOf() {
  if constexpr (requires { T::kVersion; }) {
    return T::kVersion;
  } else {
    return 1;
  }
}

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
  return std::array{Decoder{T::kKind, VersionOf<T>(), Read<T>}...};
}

constexpr auto kDecoders = MakeDecoders(static_cast<const AnyFact*>(nullptr));

Error Corrupt(const StoredFact& stored, const std::string& what) {
  return {ErrorCode::kCorrupt, "event of kind " + std::string(stored.kind) + ": " + what};
}

// The members of a report that is written in another way than WriteReport's.
Json WithNames(const Json& report) {
  return {{"attempt", report.at(0)},
          {"step", report.at(1)},
          {"seconds", report.at(2)},
          {"metrics", report.at(3)},
          {"waits", report.size() > 4 ? report.at(4) : Json(false)}};
}

std::optional<TrialReported> QuicklyDecoded(const StoredFact& stored) {
  using Known = TrialReported;
  if (stored.kind != Known::kKind || stored.version != Known::kVersion) return std::nullopt;
  if (!stored.sweep || !stored.trial) return std::nullopt;
  ReportScanner scanner(stored.payload);
  TrialReported fact{
      .attempt = {{*stored.sweep, *stored.trial}, scanner.attempt()},
      .report = {.step = Step(scanner.step()), .seconds = Seconds(scanner.seconds())}};
  Metrics& metrics = fact.report.metrics;
  while (scanner.NextMetric()) metrics.emplace_hint(metrics.end(), scanner.name(), scanner.value());
  if (!scanner.ok()) return std::nullopt;
  fact.report.waits = scanner.waits();
  return fact;
}

}  // namespace

EncodedFact Encode(const Fact& fact) {
  EncodedFact encoded{.sweep = SweepOf(fact)};
  if (const auto trial = TrialOf(fact)) encoded.trial = trial->number;
  std::visit(
      [&]<class T>(const T& known) {
        encoded.kind = T::kKind;
        encoded.version = VersionOf<T>();
        if constexpr (std::is_same_v<T, TrialReported>) {
          WriteReport(known, encoded.payload);
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
  if (auto report = QuicklyDecoded(stored)) return Fact(*std::move(report));
  for (const Decoder& decoder : kDecoders) {
    if (decoder.kind != stored.kind) continue;
    if (stored.version > decoder.version)
      return Corrupt(stored, "version " + std::to_string(stored.version) +
                                 " is newer than this program, which reads up to " +
                                 std::to_string(decoder.version) +
                                 ": use the Attune that wrote it");
    try {
      Json json = Json::parse(stored.payload);
      if (stored.kind == TrialReported::kKind && json.is_array()) json = WithNames(json);
      return decoder.read({stored.sweep, stored.trial}, json);
    } catch (const Json::exception& error) {
      return Corrupt(stored, error.what());
    }
  }
  return Corrupt(stored, "this program does not know the kind: use the Attune that wrote it");
}

}  // namespace attune::server
