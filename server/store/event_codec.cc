#include "server/store/event_codec.h"

#include <array>
#include <type_traits>
#include <utility>

#include "server/store/event_forms.h"
#include "server/store/json.h"
#include "server/store/report_form.h"

namespace attune::server {
namespace {

template <class T>
constexpr int VersionOf() {
  if constexpr (requires { Form<T>::kVersion; }) {
    return Form<T>::kVersion;
  } else {
    return 1;
  }
}

struct Decoder {
  std::string_view kind;
  int version;
  Fact (*read)(const About&, const Json&);
};

template <size_t... index>
constexpr auto MakeDecoders(std::index_sequence<index...>) {
  return std::array{Decoder{Form<std::variant_alternative_t<index, Fact>>::kKind,
                            VersionOf<std::variant_alternative_t<index, Fact>>(),
                            [](const About& about, const Json& json) -> Fact {
                              return Form<std::variant_alternative_t<index, Fact>>::Read(about,
                                                                                         json);
                            }}...};
}

constexpr auto kDecoders = MakeDecoders(std::make_index_sequence<std::variant_size_v<Fact>>());

Error Corrupt(const StoredFact& stored, const std::string& what) {
  return {ErrorCode::kCorrupt, "event of kind " + std::string(stored.kind) + ": " + what};
}

std::optional<TrialReported> QuicklyDecoded(const StoredFact& stored) {
  using Known = Form<TrialReported>;
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
        encoded.kind = Form<T>::kKind;
        encoded.version = VersionOf<T>();
        if constexpr (std::is_same_v<T, TrialReported>) {
          WriteReport(known, encoded.payload);
        } else {
          encoded.payload = Dump(Form<T>::Write(known));
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
      return decoder.read({stored.sweep, stored.trial}, Json::parse(stored.payload));
    } catch (const Json::exception& error) {
      return Corrupt(stored, error.what());
    }
  }
  return Corrupt(stored, "this program does not know the kind: use the Attune that wrote it");
}

}  // namespace attune::server
