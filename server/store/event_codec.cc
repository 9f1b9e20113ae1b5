#include "server/store/event_codec.h"

#include <array>
#include <type_traits>
#include <utility>

#include "core/check.h"
#include "server/store/json.h"
#include "server/store/report_form.h"

namespace attune::server {
namespace {

// ---- Words ---------------------------------------------------------------------------------

template <class Enum>
Enum ParseName(const Json& json, std::initializer_list<Enum> known) {
  const auto& text = json.get_ref<const std::string&>();
  for (Enum value : known) {
    if (Name(value) == text) return value;
  }
  throw Json::other_error::create(501, "'" + text + "' is not a known word", &json);
}

SweepState ParseSweepState(const Json& json) {
  using enum SweepState;
  return ParseName(json, {kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled});
}

TrialState ParseTrialState(const Json& json) {
  using enum TrialState;
  return ParseName(json, {kPending, kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled});
}

Outcome ParseOutcome(const Json& json) {
  using enum Outcome;
  return ParseName(json, {kFinished, kStopped, kPaused, kFailed, kLost, kKilled});
}

FailureKind ParseFailureKind(const Json& json) {
  using enum FailureKind;
  return ParseName(json, {kNone, kExit, kSignal, kStall, kStart, kProtocol, kLease});
}

VerdictKind ParseVerdictKind(const Json& json) {
  using enum VerdictKind;
  return ParseName(json, {kContinue, kPause, kStop, kExploit});
}

// ---- Parts of facts ------------------------------------------------------------------------

std::string Text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

double Real(const Json& json, const char* key) {
  return ValueOrThrow(sweepfile::RealFromJson(json.at(key)));
}

Json ToJson(const CheckpointRef& checkpoint) {
  return {
      {"step", checkpoint.step.value}, {"path", checkpoint.path}, {"digest", checkpoint.digest}};
}

CheckpointRef CheckpointFromJson(const Json& json) {
  return {.step = Step(json.at("step").get<int64_t>()),
          .path = Text(json, "path"),
          .digest = Text(json, "digest")};
}

Json ToJson(const RankSlot& slot) {
  return {{"executor", slot.executor},
          {"local_rank", slot.local_rank},
          {"cpus", slot.cpus},
          {"gpus", slot.gpus},
          {"memory_bytes", slot.memory_bytes}};
}

RankSlot SlotFromJson(const Json& json) {
  return {.executor = Text(json, "executor"),
          .local_rank = json.at("local_rank").get<int>(),
          .cpus = json.at("cpus").get<int>(),
          .gpus = json.at("gpus").get<std::vector<int>>(),
          .memory_bytes = json.at("memory_bytes").get<int64_t>()};
}

Json ToJson(const Failure& failure) {
  return {{"kind", Name(failure.kind)},     {"rank", failure.rank},
          {"exit_code", failure.exit_code}, {"signal", failure.signal},
          {"message", failure.message},     {"log_tail", failure.log_tail}};
}

Failure FailureFromJson(const Json& json) {
  return {.kind = ParseFailureKind(json.at("kind")),
          .rank = json.at("rank").get<int>(),
          .exit_code = json.at("exit_code").get<int>(),
          .signal = json.at("signal").get<int>(),
          .message = Text(json, "message"),
          .log_tail = Text(json, "log_tail")};
}

Json ToJson(const Reason& reason) {
  return {{"rule", reason.rule},
          {"step", reason.step.value},
          {"rung", reason.rung.value},
          {"value", sweepfile::RealToJson(reason.value)},
          {"cutoff", sweepfile::RealToJson(reason.cutoff)},
          {"rank", reason.rank},
          {"peers", reason.peers},
          {"text", reason.text}};
}

Reason ReasonFromJson(const Json& json) {
  return {.rule = Text(json, "rule"),
          .step = Step(json.at("step").get<int64_t>()),
          .rung = Step(json.at("rung").get<int64_t>()),
          .value = Real(json, "value"),
          .cutoff = Real(json, "cutoff"),
          .rank = json.at("rank").get<int64_t>(),
          .peers = json.at("peers").get<int64_t>(),
          .text = Text(json, "text")};
}

// ---- Facts ---------------------------------------------------------------------------------
// What the columns say (sweep, trial) is not repeated.

struct About {
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;

  SweepId Sweep() const {
    if (!sweep) throw Json::other_error::create(501, "the row names no sweep", nullptr);
    return *sweep;
  }
  TrialId Trial() const {
    if (!trial) throw Json::other_error::create(501, "the row names no trial", nullptr);
    return {Sweep(), *trial};
  }
  AttemptId Attempt(const Json& number) const { return {Trial(), number.get<uint32_t>()}; }
};

template <class T>
struct Form;  // kind, its version where that is not 1, Write, Read

template <>
struct Form<SweepCreated> {
  static constexpr std::string_view kKind = "sweep_created";
  static Json Write(const SweepCreated& fact) {
    return {{"spec", sweepfile::ToJson(fact.spec)},
            {"source", fact.source},
            {"idempotency_key", fact.idempotency_key}};
  }
  static SweepCreated Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .spec = ValueOrThrow(sweepfile::SpecFromJson(json.at("spec"))),
            .source = Text(json, "source"),
            .idempotency_key = Text(json, "idempotency_key")};
  }
};

template <>
struct Form<SweepStopping> {
  static constexpr std::string_view kKind = "sweep_stopping";
  static Json Write(const SweepStopping& fact) {
    return {{"outcome", Name(fact.outcome)}, {"reason", fact.reason}};
  }
  static SweepStopping Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .outcome = ParseSweepState(json.at("outcome")),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SweepEnded> {
  static constexpr std::string_view kKind = "sweep_ended";
  static Json Write(const SweepEnded& fact) {
    return {{"state", Name(fact.state)}, {"reason", fact.reason}};
  }
  static SweepEnded Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .state = ParseSweepState(json.at("state")),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SearchExhausted> {
  static constexpr std::string_view kKind = "search_exhausted";
  static Json Write(const SearchExhausted&) { return Json::object(); }
  static SearchExhausted Read(const About& about, const Json&) { return {about.Sweep()}; }
};

template <>
struct Form<TrialCreated> {
  static constexpr std::string_view kKind = "trial_created";
  static Json Write(const TrialCreated& fact) {
    return {{"config", sweepfile::ToJson(fact.config)}, {"origin", fact.origin}};
  }
  static TrialCreated Read(const About& about, const Json& json) {
    return {.trial = about.Trial(),
            .config = ValueOrThrow(sweepfile::ConfigFromJson(json.at("config"))),
            .origin = Text(json, "origin")};
  }
};

template <>
struct Form<AttemptAssigned> {
  static constexpr std::string_view kKind = "attempt_assigned";
  static Json Write(const AttemptAssigned& fact) {
    Json ranks = Json::array();
    for (const RankSlot& slot : fact.ranks) ranks.push_back(ToJson(slot));
    return {{"attempt", fact.attempt.number},
            {"epoch", fact.epoch.value},
            {"ranks", std::move(ranks)},
            {"resume", fact.resume ? ToJson(*fact.resume) : Json()},
            {"milestone", fact.milestone.value}};
  }
  static AttemptAssigned Read(const About& about, const Json& json) {
    AttemptAssigned fact{.attempt = about.Attempt(json.at("attempt")),
                         .epoch = Epoch(json.at("epoch").get<uint64_t>()),
                         .milestone = Step(json.at("milestone").get<int64_t>())};
    for (const Json& slot : json.at("ranks")) fact.ranks.push_back(SlotFromJson(slot));
    if (const Json& resume = json.at("resume"); !resume.is_null())
      fact.resume = CheckpointFromJson(resume);
    return fact;
  }
};

template <>
struct Form<AttemptStarted> {
  static constexpr std::string_view kKind = "attempt_started";
  static Json Write(const AttemptStarted& fact) {
    return {{"attempt", fact.attempt.number}, {"pids", fact.pids}};
  }
  static AttemptStarted Read(const About& about, const Json& json) {
    return {.attempt = about.Attempt(json.at("attempt")),
            .pids = json.at("pids").get<std::vector<int64_t>>()};
  }
};

template <>
struct Form<AttemptFirstStep> {
  static constexpr std::string_view kKind = "attempt_first_step";
  static Json Write(const AttemptFirstStep& fact) {
    return {{"attempt", fact.attempt.number}, {"at_us", fact.at.us}};
  }
  static AttemptFirstStep Read(const About& about, const Json& json) {
    return {.attempt = about.Attempt(json.at("attempt")),
            .at = Time{json.at("at_us").get<int64_t>()}};
  }
};

// Version 2 is an array, written and read by report_form.h; version 1 was an object.
template <>
struct Form<TrialReported> {
  static constexpr std::string_view kKind = "trial_reported";
  static constexpr int kVersion = 2;
  static TrialReported Read(const About& about, const Json& json) {
    if (json.is_object())
      return {.attempt = about.Attempt(json.at("attempt")),
              .report = Report(json.at("step"), json.at("seconds"), json.at("metrics"))};
    return {.attempt = about.Attempt(json.at(0)),
            .report = Report(json.at(1), json.at(2), json.at(3))};
  }

 private:
  static attune::Report Report(const Json& step, const Json& seconds, const Json& metrics) {
    return {.step = Step(step.get<int64_t>()),
            .metrics = ValueOrThrow(sweepfile::MetricsFromJson(metrics)),
            .seconds = Seconds(ValueOrThrow(sweepfile::RealFromJson(seconds)))};
  }
};

template <>
struct Form<TrialDecided> {
  static constexpr std::string_view kKind = "trial_decided";
  static Json Write(const TrialDecided& fact) {
    Json json = {{"attempt", fact.attempt.number},
                 {"step", fact.step.value},
                 {"verdict", Name(fact.verdict.kind)},
                 {"reason", ToJson(fact.verdict.reason)},
                 {"milestone", fact.milestone.value}};
    if (fact.verdict.kind == VerdictKind::kExploit) json["donor"] = fact.verdict.donor.value;
    return json;
  }
  static TrialDecided Read(const About& about, const Json& json) {
    TrialDecided fact{.attempt = about.Attempt(json.at("attempt")),
                      .step = Step(json.at("step").get<int64_t>()),
                      .verdict = {.kind = ParseVerdictKind(json.at("verdict")),
                                  .reason = ReasonFromJson(json.at("reason"))},
                      .milestone = Step(json.at("milestone").get<int64_t>())};
    if (fact.verdict.kind == VerdictKind::kExploit)
      fact.verdict.donor = TrialNumber(json.at("donor").get<uint32_t>());
    return fact;
  }
};

template <>
struct Form<CheckpointSaved> {
  static constexpr std::string_view kKind = "checkpoint_saved";
  static Json Write(const CheckpointSaved& fact) {
    return {{"attempt", fact.attempt.number},
            {"step", fact.checkpoint.step.value},
            {"path", fact.checkpoint.path},
            {"digest", fact.checkpoint.digest},
            {"bytes", fact.bytes}};
  }
  static CheckpointSaved Read(const About& about, const Json& json) {
    return {.attempt = about.Attempt(json.at("attempt")),
            .checkpoint = CheckpointFromJson(json),
            .bytes = json.at("bytes").get<int64_t>()};
  }
};

template <>
struct Form<AttemptEnded> {
  static constexpr std::string_view kKind = "attempt_ended";
  static Json Write(const AttemptEnded& fact) {
    Json json = {{"attempt", fact.attempt.number}, {"outcome", Name(fact.outcome)}};
    if (fact.outcome == Outcome::kFailed) json["failure"] = ToJson(fact.failure);
    return json;
  }
  static AttemptEnded Read(const About& about, const Json& json) {
    AttemptEnded fact{.attempt = about.Attempt(json.at("attempt")),
                      .outcome = ParseOutcome(json.at("outcome"))};
    if (const auto failure = json.find("failure"); failure != json.end())
      fact.failure = FailureFromJson(*failure);
    return fact;
  }
};

template <>
struct Form<TrialRequeued> {
  static constexpr std::string_view kKind = "trial_requeued";
  static Json Write(const TrialRequeued& fact) { return {{"reason", fact.reason}}; }
  static TrialRequeued Read(const About& about, const Json& json) {
    return {.trial = about.Trial(), .reason = Text(json, "reason")};
  }
};

template <>
struct Form<TrialEnded> {
  static constexpr std::string_view kKind = "trial_ended";
  static Json Write(const TrialEnded& fact) {
    return {{"state", Name(fact.state)}, {"reason", fact.reason}};
  }
  static TrialEnded Read(const About& about, const Json& json) {
    return {.trial = about.Trial(),
            .state = ParseTrialState(json.at("state")),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<ExecutorJoined> {
  static constexpr std::string_view kKind = "executor_joined";
  static Json Write(const ExecutorJoined& fact) {
    return {{"name", fact.name},
            {"instance", fact.instance},
            {"incarnation", fact.incarnation.value},
            {"address", fact.address},
            {"cpus", fact.resources.cpus},
            {"gpus", fact.resources.gpus},
            {"memory_bytes", fact.resources.memory_bytes}};
  }
  static ExecutorJoined Read(const About&, const Json& json) {
    return {.name = Text(json, "name"),
            .instance = Text(json, "instance"),
            .incarnation = Incarnation(json.at("incarnation").get<uint64_t>()),
            .address = Text(json, "address"),
            .resources = {.cpus = json.at("cpus").get<int>(),
                          .gpus = json.at("gpus").get<int>(),
                          .memory_bytes = json.at("memory_bytes").get<int64_t>()}};
  }
};

template <>
struct Form<ExecutorLost> {
  static constexpr std::string_view kKind = "executor_lost";
  static Json Write(const ExecutorLost& fact) {
    return {{"name", fact.name}, {"incarnation", fact.incarnation.value}, {"reason", fact.reason}};
  }
  static ExecutorLost Read(const About&, const Json& json) {
    return {.name = Text(json, "name"),
            .incarnation = Incarnation(json.at("incarnation").get<uint64_t>()),
            .reason = Text(json, "reason")};
  }
};

// ---- All of them ---------------------------------------------------------------------------

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
