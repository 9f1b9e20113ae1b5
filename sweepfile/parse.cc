#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <tuple>

#include "base/check.h"
#include "base/result.h"
#include "core/log/warm_start.h"
#include "core/space/draw.h"
#include "sweepfile/document.h"
#include "sweepfile/keys.h"
#include "sweepfile/labels.h"
#include "sweepfile/parse_document.h"
#include "sweepfile/patterns.h"
#include "sweepfile/program.h"
#include "sweepfile/reader.h"
#include "sweepfile/reports.h"
#include "sweepfile/scalar.h"
#include "sweepfile/space.h"
#include "sweepfile/stop.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {
namespace {

std::string DefaultName(const ParseOptions& options) {
  const std::filesystem::path file(options.file);
  std::string name = file.stem().string();
  if (name == "sweep" || name.empty()) {
    const std::string folder = std::filesystem::path(options.directory).filename().string();
    if (!folder.empty()) name = folder;
  }
  return name.empty() ? "sweep" : name;
}

int Int(const Fields& fields, std::string_view key) {
  return static_cast<int>(fields.Get<int64_t>(key));
}

Step Steps(const Fields& fields, std::string_view key) { return Step(fields.Get<int64_t>(key)); }

Seconds Duration(const Fields& fields, std::string_view key) {
  return Seconds(fields.Get<double>(key));
}

// Reads the root map into a spec; with faults it stays incomplete.
class SpecReader {
 public:
  SpecReader(const Node& root, const ParseOptions& options, Faults& faults)
      : options_(options),
        faults_(faults),
        file_(ReadSection(FileKeys(), {&root, {}, root.mark}, faults)) {}

  SweepSpec Read() {
    ReadNames();
    spec_.program = ReadProgram(file_, options_, faults_);
    ReadSearch();
    ReadWarmStart();
    ReadAlgorithms();
    ReadLimits();
    spec_.program.report_pattern = ReadReportPattern(file_, spec_, faults_);
    return std::move(spec_);
  }

 private:
  Fields Section(const sweepfile::Section& section) {
    return ReadSection(section, file_.spot(section.name), faults_);
  }

  void ReadNames() {
    spec_.name = file_.Given("name") ? file_.Get<std::string>("name") : DefaultName(options_);
    CheckName(file_.spot("name"), spec_.name, faults_);

    spec_.tags = ReadTexts(file_.spot("tags"), faults_);
    for (size_t i = 0; i < spec_.tags.size(); ++i) {
      if (spec_.tags[i].empty()) faults_.AtValue(Item(file_.spot("tags"), i), "is empty");
    }
  }

  void ReadWarmStart() {
    const Spot& spot = file_.spot("warm_start");
    const std::vector<std::string> names = ReadTexts(spot, faults_);
    if (names.size() > kMaxWarmStarts)
      faults_.AtValue(spot, std::to_string(names.size()) + " sweeps; " +
                                std::to_string(kMaxWarmStarts) + " at most");
    for (size_t i = 0; i < names.size(); ++i) {
      const auto id = ParseSweepId(names[i]);
      if (!id.ok()) {
        faults_.AtValue(Item(spot, i), id.error().message);
      } else if (std::ranges::count(spec_.warm_start, *id) > 0) {
        faults_.AtValue(Item(spot, i), names[i] + " stands here twice");
      } else {
        spec_.warm_start.push_back(*id);
      }
    }
  }

  void ReadSearch() {
    ReadObjectives();
    ReadConstraints();
    std::optional<SearchSpace> space = ReadSpace(file_.spot("parameters"), faults_);
    if (!space) return;
    spec_.space = *std::move(space);
    spec_.initial_points = ReadInitialPoints(file_.spot("initial_points"), spec_.space, faults_);
    CheckPlaceholders(file_.spot("command"), spec_.space, faults_);
  }

  void ReadObjectives() {
    const Spot& one = file_.spot("metric");
    const Spot& several = file_.spot("metrics");
    if (one.node == nullptr && several.node == nullptr)
      return faults_.Add(one.place, one.mark, "missing: what the sweep improves");
    if (one.node != nullptr && several.node != nullptr)
      return faults_.Add(several.place, several.mark,
                         "metric is there as well; put it first in metrics, and remove it");
    spec_.objectives.clear();
    if (one.node != nullptr) {
      ReadObjective(one);
    } else if (several.node->kind != Node::Kind::kList || several.node->items.empty()) {
      faults_.AtValue(several,
                      "expected a list such as [{name: loss, mode: min}], found " +
                          (several.node->kind == Node::Kind::kList ? "an empty list"
                                                                   : Describe(*several.node)));
    } else if (several.node->items.size() > kMaxObjectives) {
      faults_.AtValue(several, "has " + std::to_string(several.node->items.size()) +
                                   " metrics; at most " + std::to_string(kMaxObjectives) +
                                   " can be improved together");
    } else {
      for (size_t i = 0; i < several.node->items.size(); ++i) ReadObjective(Item(several, i));
    }
    auto& targets = spec_.stop.targets;
    while (!targets.empty() && !targets.back()) targets.pop_back();
  }

  void ReadObjective(const Spot& spot) {
    const Fields metric = ReadSection(MetricKeys(), spot, faults_);
    const auto name = metric.Get<std::string>("name");
    CheckName(metric.spot("name"), name, faults_);
    const auto same = [&](const Objective& known) { return known.metric == name; };
    if (!name.empty() && std::ranges::any_of(spec_.objectives, same))
      faults_.AtValue(metric.spot("name"), name + " is there twice; name each metric once");
    spec_.objectives.push_back(
        {name, metric.Get<std::string>("mode") == "min" ? Mode::kMin : Mode::kMax});
    auto& target = spec_.stop.targets.emplace_back();
    if (const Value* given = metric.Find("target")) target = std::get<double>(*given);
  }

  void ReadConstraints() {
    const Spot& constraints = file_.spot("constraints");
    if (constraints.node == nullptr) return;
    if (constraints.node->kind != Node::Kind::kMap)
      return faults_.AtValue(constraints, "expected a map such as {latency_ms: {max: 20}}, found " +
                                              Describe(*constraints.node));
    if (constraints.node->entries.size() > kMaxConstraints)
      return faults_.AtValue(constraints,
                             "has more than " + std::to_string(kMaxConstraints) + " metrics");
    for (const MapEntry& entry : constraints.node->entries)
      ReadConstraint(entry.key, Child(constraints, entry));
  }

  void ReadConstraint(const std::string& name, const Spot& spot) {
    if (name.empty()) return faults_.AtValue(spot, "names no metric");
    CheckName(spot, name, faults_);
    const Fields bounds = ReadSection(ConstraintKeys(), spot, faults_);
    Constraint constraint{.metric = name};
    if (const Value* min = bounds.Find("min")) constraint.min = std::get<double>(*min);
    if (const Value* max = bounds.Find("max")) constraint.max = std::get<double>(*max);
    const bool map = spot.node != nullptr && spot.node->kind == Node::Kind::kMap;
    if (map && !bounds.Given("min") && !bounds.Given("max"))
      faults_.AtValue(spot, "says nothing; give min, max or both");
    if (constraint.min && constraint.max && *constraint.min > *constraint.max)
      faults_.AtValue(bounds.spot("max"),
                      FormatReal(*constraint.max) + " is below min " + FormatReal(*constraint.min));
    spec_.constraints.push_back(std::move(constraint));
  }

  void ReadAlgorithms() {
    const Algorithms& algorithms = *options_.algorithms;
    const Fields searcher = ReadAlgorithm(SearcherKeys(algorithms), [&](std::string_view name) {
      return SearcherKeys(algorithms, name);
    });
    spec_.searcher.name = searcher.Get<std::string>("name");
    spec_.seed = static_cast<uint64_t>(searcher.Get<int64_t>("seed"));
    CompletePoints();
    if (const auto* entry = algorithms.FindSearcher(spec_.searcher.name)) {
      ReadOptions(entry->options, searcher, spec_.searcher);
    }

    const Fields scheduler = ReadAlgorithm(SchedulerKeys(algorithms), [&](std::string_view name) {
      return SchedulerKeys(algorithms, name);
    });
    spec_.scheduler.name = scheduler.Get<std::string>("name");
    if (scheduler.Given("time_attr")) {
      spec_.time_attr = scheduler.Get<std::string>("time_attr");
      CheckName(scheduler.spot("time_attr"), spec_.time_attr, faults_);
    }
    spec_.max_step = Steps(scheduler, "max");
    if (const auto* entry = algorithms.FindScheduler(spec_.scheduler.name)) {
      ReadOptions(entry->options, scheduler, spec_.scheduler);
    }
  }

  void CompletePoints() {
    for (size_t i = 0; i < spec_.initial_points.size(); ++i) {
      RandomStream rest(spec_.seed, TrialNumber(static_cast<uint32_t>(i)), "initial_points");
      Config& point = spec_.initial_points[i];
      point = Complete(spec_.space, point, rest).value();
    }
  }

  // Which keys there are depends on `name`, so that is read first. Where it is wrong nothing can be
  // said of the others, and only the name is told.
  template <class KeysOf>
  Fields ReadAlgorithm(const sweepfile::Section& common, KeysOf keys_of) {
    const Spot& spot = file_.spot(common.name);
    const MapEntry* name = spot.node == nullptr ? nullptr : spot.node->Find("name");
    Node name_only{.kind = Node::Kind::kMap, .mark = spot.mark};
    if (name != nullptr) name_only.entries.push_back(*name);
    const Spot name_spot{&name_only, spot.place, spot.mark};

    const size_t before = faults_.count();
    Fields fields = ReadSection(common, name_spot, faults_);
    if (faults_.count() != before) return fields;
    return ReadSection(keys_of(fields.Get<std::string>("name")), spot, faults_);
  }

  static void ReadOptions(const std::vector<Option>& options, const Fields& fields,
                          AlgorithmSpec& spec) {
    for (const Option& option : options) {
      if (const Value* value = fields.Find(option.name)) spec.options[option.name] = *value;
    }
  }

  void ReadLimits() {
    const Fields resources = Section(ResourcesKeys());
    spec_.gang = {.workers = Int(resources, "workers"),
                  .per_worker = {.cpus = Int(resources, "cpus_per_worker"),
                                 .memory_bytes = resources.Get<int64_t>("memory_per_worker")},
                  .placement = *PlacementNamed(resources.Get<std::string>("placement"))};
    spec_.gang.required = ReadRequirements(resources.spot("requires"), faults_);
    ReadGpus(resources);
    ReadElastic(resources);
    spec_.max_concurrent_trials = Int(file_, "max_concurrent_trials");
    spec_.priority = Int(file_, "priority");
    const Fields checkpoint = Section(CheckpointKeys());
    spec_.checkpoint = {.every = Steps(checkpoint, "every"),
                        .keep_last = Int(checkpoint, "keep_last"),
                        .keep_best = Int(checkpoint, "keep_best")};
    const Fields failure = Section(FailureKeys());
    spec_.failure = {.max_restarts = Int(failure, "max_restarts"),
                     .max_failed_trials = Int(failure, "max_failed_trials"),
                     .backoff = Duration(failure, "backoff"),
                     .stall_timeout = Duration(failure, "stall_timeout"),
                     .on_log = ReadLogPolicies(failure.spot("on_log"), faults_)};
    const Fields stop = Section(StopKeys());
    spec_.stop.max_trials = Int(stop, "max_trials");
    spec_.stop.max_time = Duration(stop, "max_time");
    spec_.stop.max_gpu_hours = stop.Get<double>("max_gpu_hours");
    spec_.stop.patience = Int(stop, "patience");
    spec_.stop.max_trial_time = Duration(stop, "max_trial_time");
    spec_.stop.trial_patience = Int(stop, "trial_patience");
    if (!spec_.objectives.empty()) ReadTrialStoppers(stop, spec_, faults_);
    if (!file_.Given("command")) {
      RefuseProgramKeys(file_, {"env", "working_directory", "reports", "resources", "checkpoint"});
      RefuseProgramKeys(failure, {"stall_timeout", "on_log"});
      RefuseProgramKeys(stop, {"max_gpu_hours"});
    }
  }

  void ReadGpus(const Fields& resources) {
    const Value* value = resources.Find("gpus_per_worker");
    if (value == nullptr) return;
    if (SetGpus(*value, spec_.gang)) {
      if (spec_.gang.gpu_percent < 100 && spec_.gang.workers > 1)
        faults_.AtValue(resources.spot("gpus_per_worker"),
                        "a share of a GPU is for trials with one worker, since ranks of one gang "
                        "need a GPU each; give workers: 1, or whole GPUs");
      return;
    }
    faults_.AtValue(
        resources.spot("gpus_per_worker"),
        FormatReal(std::get<double>(*value)) +
            " is neither whole nor a share of one GPU in hundredths, from 0.01 to 0.99");
  }

  void ReadElastic(const Fields& resources) {
    GangSpec& gang = spec_.gang;
    if (resources.Find("min_workers") != nullptr) gang.min_workers = Int(resources, "min_workers");
    gang.grow_after = Duration(resources, "grow_after");
    gang.grow = *GrowthNamed(resources.Get<std::string>("grow"));
    if (gang.min_workers > gang.workers)
      faults_.AtValue(
          resources.spot("min_workers"),
          std::to_string(gang.min_workers) + " is above workers " + std::to_string(gang.workers));
    for (const char* key : {"grow_after", "grow"}) {
      if (resources.Given(key) && !resources.Given("min_workers"))
        faults_.AtValue(resources.spot(key),
                        "is about trials that run with fewer than workers; give min_workers, or "
                        "remove this");
    }
    // Said of a gang that is never smaller, they change nothing.
    if (gang.min_workers == gang.workers) gang.min_workers = 0;
    if (gang.min_workers > 0) return;
    gang.grow_after = GangSpec{}.grow_after;
    gang.grow = GangSpec{}.grow;
  }

  void RefuseProgramKeys(const Fields& fields, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!fields.Given(key)) continue;
      const Spot& spot = fields.spot(key);
      faults_.Add(spot.place, spot.mark,
                  "is about the program that runs, and the file has no command; name the program "
                  "in command, or remove this");
    }
  }

  const ParseOptions& options_;
  Faults& faults_;
  const Fields file_;
  SweepSpec spec_;
};

// The longest way from the root along a dotted path as core writes it: parameters.a.b.max, where a
// parameter may be called a.b.
Place PlaceOfPath(const Node& root, std::string_view path) {
  Place place;
  const Node* node = &root;
  while (!path.empty()) {
    const MapEntry* next = nullptr;
    for (const MapEntry& entry : node->entries) {
      const bool leads = path.starts_with(entry.key) &&
                         (path.size() == entry.key.size() || path[entry.key.size()] == '.');
      if (leads && (next == nullptr || entry.key.size() > next->key.size())) next = &entry;
    }
    if (next == nullptr) break;
    place = place.Key(next->key);
    node = &next->value;
    path.remove_prefix(std::min(path.size(), next->key.size() + 1));
  }
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    place = place.Key(path.substr(0, dot));
    path.remove_prefix(std::min(path.size(), dot + 1));
  }
  return place;
}

// "scheduler.min: 9 is not below max 9": the path in front of the colon says where.
void TellError(const Error& error, const Node& root, std::string_view otherwise, Faults& faults) {
  const std::string_view message = error.message;
  size_t colon = message.find(": ");
  std::string_view path = message.substr(0, colon);
  const std::string_view head = path.substr(0, path.find('.'));
  if (colon == message.npos || FileKeys().Find(head) == nullptr) {
    path = otherwise;
    colon = 0;
  }
  const Place place = PlaceOfPath(root, path);
  faults.Add(place, Locate(root, place), std::string(message.substr(colon == 0 ? 0 : colon + 2)));
}

// Sections that no searcher and no scheduler looks at, or only at what is right in them
// (`command`, `warm_start`).
constexpr std::string_view kOfNoAlgorithm[] = {"apiVersion",     "kind",
                                               "name",           "tags",
                                               "command",        "env",
                                               "initial_points", "warm_start",
                                               "priority",       "working_directory",
                                               "reports",        "checkpoint",
                                               "failure",        "max_concurrent_trials"};

// Whether a fault leaves open what the file says to a searcher or scheduler; `other`: the section
// of the other one.
bool Concerns(const Fault& fault, std::string_view other) {
  std::string_view section = fault.pointer;
  if (section.empty()) return true;
  section.remove_prefix(1);
  section = section.substr(0, section.find('/'));
  return section != other && std::ranges::find(kOfNoAlgorithm, section) == std::end(kOfNoAlgorithm);
}

// What is said of a spec with faults is no consequence of them.
void TryAlgorithms(const SweepSpec& spec, const Algorithms& algorithms, const Node& root,
                   const std::vector<Fault>& found, Faults& faults) {
  if (faults.full()) return;
  const auto is_sound = [&](std::string_view other) {
    return std::ranges::none_of(found, [&](const Fault& each) { return Concerns(each, other); });
  };
  const bool tries_searcher = is_sound("scheduler");
  const bool tries_scheduler = is_sound("searcher");
  if (tries_searcher) {
    const auto searcher = algorithms.MakeSearcher(spec);
    if (!searcher.ok()) TellError(searcher.error(), root, "searcher", faults);
  }
  if (tries_scheduler) {
    const auto scheduler = algorithms.MakeScheduler(spec);
    if (!scheduler.ok()) TellError(scheduler.error(), root, "scheduler", faults);
  }
}

}  // namespace

std::optional<Fault> FaultOf(const Error& error, std::string_view text) {
  const Document document = ReadDocument(text);
  if (!document.root) return std::nullopt;
  std::vector<Fault> found;
  Faults faults(found);
  TellError(error, *document.root, "", faults);
  return found.front().pointer.empty() ? std::nullopt : std::optional(found.front());
}

Parsed ParseSweep(std::string_view text, const ParseOptions& options) {
  return ParseDocument(ReadDocument(text), options);
}

Parsed ParseDocument(Document document, const ParseOptions& options) {
  ATTUNE_CHECK(options.algorithms != nullptr);
  Parsed parsed;
  parsed.faults = std::move(document.faults);
  Faults faults(parsed.faults);
  if (document.root && document.root->kind == Node::Kind::kMap) {
    SweepSpec spec = SpecReader(*document.root, options, faults).Read();
    TryAlgorithms(spec, *options.algorithms, *document.root, parsed.faults, faults);
    if (parsed.faults.empty()) parsed.spec = std::move(spec);
  } else if (parsed.faults.empty()) {
    const bool empty = !document.root || document.root->kind == Node::Kind::kNull;
    faults.Add({}, empty ? Mark{} : document.root->mark,
               empty ? "the file is empty; a sweep needs metric and parameters, and command where "
                       "Attune is to run a program"
                     : "expected a map of keys such as command, metric and parameters, found " +
                           Describe(*document.root));
  }
  std::stable_sort(parsed.faults.begin(), parsed.faults.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return parsed;
}

std::string Sentence(const Fault& fault) {
  return fault.suggestion.empty() ? fault.message
                                  : fault.message + "; did you mean " + fault.suggestion + "?";
}

std::string FormatFault(std::string_view file, const Fault& fault) {
  std::string text(file);
  text += ":" + std::to_string(fault.line) + ":" + std::to_string(fault.column) + ": ";
  if (!fault.path.empty()) text += fault.path + ": ";
  return text + Sentence(fault);
}

}  // namespace attune::sweepfile
