#include "server/http/routes/request/body.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/message_limits.h"
#include "base/result.h"
#include "sweepfile/codec.h"
#include "sweepfile/keys.h"
#include "sweepfile/members.h"
#include "sweepfile/reader.h"
#include "sweepfile/scalar.h"
#include "sweepfile/space.h"
#include "sweepfile/text.h"

namespace attune::server {
namespace {

using sweepfile::Fields;
using sweepfile::Section;
using sweepfile::Spot;

constexpr double kMaxInt = std::numeric_limits<int>::max();
constexpr double kShortestLeaseSeconds = 1;
constexpr size_t kReasonMaxBytes = 1000;
constexpr auto kMaxExact = static_cast<double>(kIntegerMax);

// Reads a body according to a table of keys and collects its faults.
class BodyReader {
 public:
  BodyReader(std::string_view text, const Section& keys)
      : document_(sweepfile::ReadDocument(text)), faults_(content_faults_), fields_(Read(keys)) {
    sweepfile::Faults(document_.faults, document_.unlisted).Close();
  }

  const Fields& fields() const { return fields_; }
  sweepfile::Faults& faults() { return faults_; }

  // If the text cannot be parsed to its end, returns only that fault.
  template <class T>
  Body<T> Finish(T value) {
    faults_.Close();
    Body<T> body{.faults =
                     std::move(document_.faults.empty() ? content_faults_ : document_.faults)};
    if (body.faults.empty()) body.value = std::move(value);
    return body;
  }

 private:
  Fields Read(const Section& keys) {
    if (!document_.root || document_.root->kind == sweepfile::Node::Kind::kNull)
      document_.root = {.kind = sweepfile::Node::Kind::kMap};
    return ReadSection(keys, {&*document_.root, {}, document_.root->mark}, faults_);
  }

  sweepfile::Document document_;
  std::vector<sweepfile::Fault> content_faults_;  // faults of the contents
  sweepfile::Faults faults_;
  Fields fields_;
};

const Section& ExtensionKeys() {
  static const Section section{
      .keys = {
          {.name = "max_trials", .type = KeyType::kInteger, .min = 0, .max = kMaxInt},
          {.name = "max_step", .type = KeyType::kInteger, .min = 1, .max = kMaxExact},
          {.name = "max_time", .type = KeyType::kDuration, .min = 0, .max = kMaxDuration.value},
          {.name = "max_gpu_hours", .type = KeyType::kReal, .min = 0},
      }};
  return section;
}

const Section& NewTrialKeys() {
  static const Section section{.keys = {{.name = "config",
                                         .type = KeyType::kMap,
                                         .help = "The values of its parameters",
                                         .required = true},
                                        {.name = "patch"}}};
  return section;
}

const Section& RetryKeys() {
  static const Section section{
      .keys = {{.name = "from_start", .type = KeyType::kBoolean, .fallback = Value(false)}}};
  return section;
}

Key TagsKey(std::string name, std::string replaces) {
  return {.name = std::move(name),
          .type = KeyType::kTexts,
          .most = kTagsMax,
          .items = "tags",
          .example = "[best, lr]",
          .replaces = std::move(replaces)};
}

const Section& AnnotationKeys() {
  static const Section section{.keys = {{.name = "note", .fallback = Value(std::string())},
                                        TagsKey("tags", ""),
                                        TagsKey("add_tags", "tags"),
                                        TagsKey("remove_tags", "tags")}};
  return section;
}

const Section& DrainKeys() {
  static const Section section{
      .keys = {{.name = "reason", .help = "Why, for people"},
               {.name = "now", .type = KeyType::kBoolean, .fallback = Value(false)}}};
  return section;
}

const Section& ContinueKeys() {
  static const Section section{.keys = {{.name = "until",
                                         .type = KeyType::kInteger,
                                         .help = "The step that the trial must reach",
                                         .required = true,
                                         .min = 1,
                                         .max = kMaxExact}}};
  return section;
}

Key LeaseKey() {
  return {.name = "lease",
          .type = KeyType::kDuration,
          .min = kShortestLeaseSeconds,
          .max = kMaxDuration.value};
}

const Section& AskKeys() {
  static const Section section{.keys = {LeaseKey()}};
  return section;
}

const Section& TellKeys() {
  static const Section section{
      .keys = {
          {.name = "epoch",
           .type = KeyType::kInteger,
           .help = "The epoch that came with the trial",
           .required = true,
           .min = 1,
           .max = kMaxExact},
          {.name = "step", .type = KeyType::kInteger, .min = 1, .max = kMaxExact},
          {.name = "metrics", .type = KeyType::kMap},
          {.name = "seconds", .type = KeyType::kReal, .fallback = Value(0.0), .min = 0, .max = 1e9},
          {.name = "state", .one_of = {"completed", "failed", "released", "running"}},
          {.name = "message", .fallback = Value(std::string())},
          {.name = "ask", .type = KeyType::kBoolean, .fallback = Value(false)},
          LeaseKey(),
      }};
  return section;
}

void AddMissing(BodyReader& body, const char* key, const std::string& what) {
  const Spot& spot = body.fields().spot(key);
  body.faults().Add(spot.place, spot.mark, "missing: " + what);
}

// The member `lease`; 0 if it is absent.
Seconds ReadLease(const Fields& fields) {
  return Seconds(fields.Find("lease") != nullptr ? fields.Get<double>("lease") : 0);
}

Status CheckTag(std::string_view tag) {
  const bool fits = !tag.empty() && tag.size() <= kTagBytesMax && !HasControlCharacters(tag) &&
                    tag.find_first_of(" ,\"'") == tag.npos;
  if (fits) return {};
  return Invalid("\"" + std::string(tag) + "\" is not a tag; write 1 to " +
                 std::to_string(kTagBytesMax) +
                 " bytes without blanks, commas, quotes and control characters");
}

std::string ReadNote(BodyReader& body) {
  auto note = body.fields().Get<std::string>("note");
  const Spot& spot = body.fields().spot("note");
  if (note.size() > kNoteBytesMax)
    body.faults().AtValue(spot, "has " + std::to_string(note.size()) + " bytes, more than " +
                                    std::to_string(kNoteBytesMax) + "; shorten it");
  if (const auto fault = sweepfile::CheckText(note)) body.faults().AtValue(spot, fault->message);
  return note;
}

// Reads the list `name`. Tags that are not `known` must have the form of a tag.
std::vector<std::string> ReadTags(BodyReader& body, const char* name,
                                  const std::vector<std::string>& known) {
  const Spot& spot = body.fields().spot(name);
  std::vector<std::string> tags;
  sweepfile::ReadItems(*AnnotationKeys().Find(name), spot, tags, body.faults());
  const bool whole = spot.node != nullptr && tags.size() == spot.node->items.size();
  for (size_t i = 0; whole && i < tags.size(); ++i) {
    const Status checked =
        std::ranges::find(known, tags[i]) == known.end() ? CheckTag(tags[i]) : Status();
    if (!checked.ok()) body.faults().AtValue(Item(spot, i), checked.error().message);
  }
  return tags;
}

void AddTags(const std::vector<std::string>& added, std::vector<std::string>& tags) {
  for (const std::string& tag : added)
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
}

// A number, or the strings "nan", "inf" and "-inf", which JSON cannot express as numbers.
Result<double> ReadMetric(const sweepfile::Node& node) {
  if (node.kind == sweepfile::Node::Kind::kScalar &&
      (node.text == "nan" || node.text == "inf" || node.text == "-inf"))
    return sweepfile::RealFromJson(node.text);
  return sweepfile::ReadReal(node);
}

Metrics ReadMetrics(BodyReader& body, const std::vector<std::string>& needed) {
  Metrics metrics;
  const Spot& spot = body.fields().spot("metrics");
  if (spot.node->kind != sweepfile::Node::Kind::kMap) {
    body.faults().AtValue(spot, "expected a map of metrics, found " + Describe(*spot.node));
    return metrics;
  }
  if (std::ssize(spot.node->entries) > kMetricsMax)
    body.faults().AtValue(spot, "more than " + std::to_string(kMetricsMax) + " metrics");
  for (const sweepfile::MapEntry& entry : spot.node->entries) {
    if (!IsMetricName(entry.key))
      body.faults().Add(Child(spot, entry).place, entry.mark,
                        "a metric has a name of 1 to " + std::to_string(kMetricNameBytesMax) +
                            " bytes without control characters");
    const Result<double> value = ReadMetric(entry.value);
    if (value.ok()) {
      metrics[entry.key] = *value;
    } else {
      body.faults().AtValue(Child(spot, entry), value.error().message);
    }
  }
  for (const std::string& metric : needed) {
    if (spot.node->Find(metric) == nullptr)
      body.faults().Add(spot.place.Key(metric), spot.mark, "missing: the metric of the sweep");
  }
  return metrics;
}

// Sets the report's step from the metric `time_attr`, which counts the steps of the sweep.
void ReadTime(BodyReader& body, const std::string& time_attr, double time, Report& report) {
  const std::optional<Step> step = StepOfTime(time);
  const Fields& fields = body.fields();
  if (!step) {
    body.faults().AtValue(fields.spot("metrics"),
                          time_attr + ", which counts the steps of the sweep, is " +
                              FormatShort(time) + "; it must be finite and at least 1");
  } else if (fields.IsGiven("step") && *step != report.step) {
    body.faults().AtValue(fields.spot("step"), "is " + std::to_string(report.step.value) +
                                                   ", but " + time_attr +
                                                   ", which counts the steps of the sweep, says " +
                                                   std::to_string(step->value) + "; remove step");
  }
  report.step = step.value_or(report.step);
}

}  // namespace

Body<ExtendSweep> ReadExtension(std::string_view text, SweepId sweep) {
  BodyReader body(text, ExtensionKeys());
  const Fields& fields = body.fields();
  ExtendSweep command{.sweep = sweep};
  if (fields.Find("max_trials") != nullptr)
    command.max_trials = static_cast<int>(fields.Get<int64_t>("max_trials"));
  if (fields.Find("max_step") != nullptr) command.max_step = Step(fields.Get<int64_t>("max_step"));
  if (fields.Find("max_time") != nullptr)
    command.max_time = Seconds(fields.Get<double>("max_time"));
  if (fields.Find("max_gpu_hours") != nullptr)
    command.max_gpu_hours = fields.Get<double>("max_gpu_hours");
  const auto is_given = [&](const Key& key) { return fields.IsGiven(key.name); };
  if (std::ranges::none_of(ExtensionKeys().keys, is_given))
    AddMissing(body, "max_trials", "a limit: max_trials, max_step, max_time or max_gpu_hours");
  return body.Finish(command);
}

Body<NewTrial> ReadNewTrial(std::string_view text, const SearchSpace& space) {
  BodyReader body(text, NewTrialKeys());
  NewTrial trial;
  if (body.fields().IsGiven("config"))
    trial.config =
        ReadConfig(body.fields().spot("config"), space, body.faults()).value_or(Config());
  trial.patch = body.fields().Get<std::string>("patch");
  return body.Finish(std::move(trial));
}

Body<Annotation> ReadAnnotation(std::string_view text, const std::string& note,
                                const std::vector<std::string>& tags) {
  BodyReader body(text, AnnotationKeys());
  const Fields& fields = body.fields();
  const auto is_given = [&](const Key& key) { return fields.IsGiven(key.name); };
  if (std::ranges::none_of(AnnotationKeys().keys, is_given))
    AddMissing(body, "note", "a change: note, tags, add_tags or remove_tags");
  std::vector<std::string> now;
  if (fields.IsGiven("tags")) {
    AddTags(ReadTags(body, "tags", tags), now);
  } else {
    const std::vector<std::string> removed = ReadTags(body, "remove_tags", tags);
    std::ranges::copy_if(tags, std::back_inserter(now), [&](const std::string& tag) {
      return std::ranges::find(removed, tag) == removed.end();
    });
    AddTags(ReadTags(body, "add_tags", tags), now);
    if (fields.IsGiven("add_tags") && now.size() > kTagsMax)
      body.faults().AtValue(fields.spot("add_tags"),
                            "makes " + std::to_string(now.size()) + " tags, more than " +
                                std::to_string(kTagsMax) + "; remove some of them");
  }
  Annotation annotation;
  if (fields.IsGiven("note")) annotation.note = ReadNote(body);
  if (annotation.note == note) annotation.note.reset();
  if (now != tags) annotation.tags = std::move(now);
  return body.Finish(std::move(annotation));
}

Body<bool> ReadNothing(std::string_view text) {
  static const Section none;
  return BodyReader(text, none).Finish(true);
}

Body<bool> ReadRetry(std::string_view text) {
  BodyReader body(text, RetryKeys());
  return body.Finish(body.fields().Get<bool>("from_start"));
}

Body<Step> ReadContinue(std::string_view text) {
  BodyReader body(text, ContinueKeys());
  return body.Finish(Step(body.fields().Get<int64_t>("until")));
}

Body<DrainExecutor> ReadDrain(std::string_view text, const std::string& executor) {
  BodyReader body(text, DrainKeys());
  const Fields& fields = body.fields();
  DrainExecutor drain{executor, fields.Get<std::string>("reason"), fields.Get<bool>("now")};
  if (drain.reason.size() > kReasonMaxBytes)
    body.faults().AtValue(fields.spot("reason"),
                          "longer than " + std::to_string(kReasonMaxBytes) + " bytes");
  return body.Finish(std::move(drain));
}

Body<Seconds> ReadAsk(std::string_view text) {
  BodyReader body(text, AskKeys());
  return body.Finish(ReadLease(body.fields()));
}

Body<TellBody> ReadTell(std::string_view text, const std::vector<std::string>& metrics,
                        const std::string& time_attr) {
  BodyReader body(text, TellKeys());
  const Fields& fields = body.fields();
  TellBody tell{.epoch = Epoch(static_cast<uint64_t>(fields.Get<int64_t>("epoch"))),
                .message = CutEnd(fields.Get<std::string>("message"), kErrorTextBytesMax)};
  if (fields.Get<bool>("ask")) {
    tell.next_lease = ReadLease(fields);
  } else if (fields.IsGiven("lease")) {
    body.faults().AtValue(fields.spot("lease"), "applies only to the next trial; add `ask`");
  }
  if (fields.IsGiven("state")) {
    const auto state = fields.Get<std::string>("state");
    if (state == "failed") tell.outcome = Outcome::kFailed;
    if (state == "released") tell.outcome = Outcome::kLost;
    tell.running = state == "running";
    if (fields.IsGiven("step") || fields.IsGiven("metrics"))
      body.faults().AtValue(fields.spot("state"),
                            "must not be combined with step or metrics; tell the last step first");
    return body.Finish(std::move(tell));
  }
  if (!fields.IsGiven("step") && time_attr.empty())
    AddMissing(body, "step", "the step of the report, or state to end the trial");
  if (!fields.IsGiven("metrics")) {
    AddMissing(body, "metrics", "the metrics of this step");
    return body.Finish(std::move(tell));
  }
  const Value* step = fields.Find("step");
  tell.report = Report{.step = Step(step != nullptr ? std::get<int64_t>(*step) : 0),
                       .metrics = ReadMetrics(body, metrics),
                       .seconds = Seconds(fields.Get<double>("seconds")),
                       .waits = true};
  const auto time = tell.report->metrics.find(time_attr);
  if (!time_attr.empty() && time != tell.report->metrics.end())
    ReadTime(body, time_attr, time->second, *tell.report);
  return body.Finish(std::move(tell));
}

}  // namespace attune::server
