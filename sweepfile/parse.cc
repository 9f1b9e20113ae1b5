#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/check.h"
#include "base/result.h"
#include "core/space/draw.h"
#include "sweepfile/checks.h"
#include "sweepfile/document.h"
#include "sweepfile/keys.h"
#include "sweepfile/program.h"
#include "sweepfile/reader.h"
#include "sweepfile/scalar.h"
#include "sweepfile/space.h"
#include "sweepfile/spec_reader.h"
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

// Sets the values of a spec that do not come from the file, and checks rules that rows cannot
// express.
class Completion {
 public:
  Completion(const ParseOptions& options, SpecReader& reader, Faults& faults)
      : options_(options), reader_(reader), spec_(reader.spec()), faults_(faults) {}

  void Run() {
    const Fields& file = reader_.file();
    if (!file.IsGiven("name")) spec_.name = DefaultName(options_);
    CheckName(file.spot("name"), spec_.name, faults_);
    for (size_t i = 0; i < spec_.tags.size(); ++i) {
      if (spec_.tags[i].empty())
        faults_.AtValue(Item(file.spot("tags"), i), "is empty; write a tag or remove it");
    }
    CheckName(reader_.section("scheduler").spot("time_attr"), spec_.time_attr, faults_);
    ReadPoints(file.spot("initial_points"));
    CompleteGang();
    if (spec_.stop.plateau)
      CompletePlateau(reader_.section("stop").spot("plateau"), spec_, faults_);
    if (file.IsGiven("command")) {
      CompleteProgram(file, options_, spec_.program, faults_);
      CheckPlaceholders(file.spot("command"), spec_.space, faults_);
      CheckPatches();
      if (!spec_.program.report_pattern.empty())
        CheckReportPattern(reader_.section("reports").spot("pattern"), spec_, faults_);
    } else {
      RefuseProgramKeys();
      spec_.program = {};
      CheckPatches();
    }
  }

 private:
  void ReadPoints(const Spot& spot) {
    if (spec_.space.parameters().empty() && faults_.count() > 0) return;  // the space has faults
    spec_.initial_points = ReadInitialPoints(spot, spec_.space, faults_);
    for (size_t i = 0; i < spec_.initial_points.size(); ++i) {
      RandomStream rest(spec_.seed, TrialNumber(static_cast<uint32_t>(i)), "initial_points");
      Config& point = spec_.initial_points[i];
      point = Complete(spec_.space, point, rest).value();
    }
  }

  void CheckPatches() {
    const Fields& file = reader_.file();
    for (const Parameter& parameter : spec_.space.parameters()) {
      if (parameter.patches && !spec_.program.code)
        faults_.AtValue(KeyIn(KeyIn(file.spot("parameters"), parameter.name), "patches"),
                        "changes the code, but the sweep has none; add the key code");
    }
  }

  void CompleteGang() {
    GangSpec& gang = spec_.gang;
    const Fields& resources = reader_.section("resources");
    if (gang.gpu_percent < 100 && gang.workers > 1)
      faults_.AtValue(resources.spot("gpus_per_worker"),
                      "only a trial with one worker can use a share of a GPU; set workers to 1, or "
                      "give whole GPUs");
    if (gang.min_workers > gang.workers)
      faults_.AtValue(resources.spot("min_workers"),
                      std::to_string(gang.min_workers) + " is above workers " +
                          std::to_string(gang.workers) + "; lower it or raise workers");
    // The gang always has all workers, so min_workers has no effect.
    if (gang.min_workers == gang.workers) gang.min_workers = 0;
    if (gang.min_workers > 0) return;
    gang.grow_after = GangSpec{}.grow_after;
    gang.grow = GangSpec{}.grow;
  }

  void RefuseProgramKeys() {
    RefuseProgramKeys(FileKeys(), reader_.file());
    for (const FileSection& section : kFileSections) {
      if (!FileKeys().Find(section.name)->of_program)
        RefuseProgramKeys(SectionNamed(section.name), reader_.section(section.name));
    }
  }

  void RefuseProgramKeys(const Section& section, const Fields& fields) {
    for (const Key& key : section.keys) {
      if (!key.of_program || !fields.IsGiven(key.name)) continue;
      const Spot& spot = fields.spot(key.name);
      faults_.Add(spot.place, spot.mark,
                  "applies only to a program that Attune runs; add command, or remove this key");
    }
  }

  const ParseOptions& options_;
  SpecReader& reader_;
  SweepSpec& spec_;
  Faults& faults_;
};

// The place of the longest existing part of a dotted path from core: parameters.a.b.max. The name
// of a parameter may itself contain dots, such as a.b.
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

// Adds an error as a fault. The text before the colon is its path: "scheduler.min: 9 is not below
// max 9".
void AddError(const Error& error, const Node& root, std::string_view otherwise, Faults& faults) {
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

// Sections that no searcher or scheduler uses, or whose faults do not affect them (`command`,
// `warm_start`).
constexpr std::string_view kOfNoAlgorithm[] = {"apiVersion",
                                               "kind",
                                               "name",
                                               "tags",
                                               "command",
                                               "code",
                                               "env",
                                               "secrets",
                                               "environment",
                                               "data",
                                               "initial_points",
                                               "warm_start",
                                               "priority",
                                               "working_directory",
                                               "reports",
                                               "checkpoint",
                                               "failure",
                                               "max_concurrent_trials"};

// Whether a fault affects the spec as a searcher or scheduler sees it. `other` is the section of
// the other algorithm.
bool Concerns(const Fault& fault, std::string_view other) {
  std::string_view section = fault.pointer;
  if (section.empty()) return true;
  section.remove_prefix(1);
  section = section.substr(0, section.find('/'));
  return section != other && std::ranges::find(kOfNoAlgorithm, section) == std::end(kOfNoAlgorithm);
}

// Lets the algorithms check the spec, except where a fault already affects what they see.
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
    if (!searcher.ok()) AddError(searcher.error(), root, "searcher", faults);
  }
  if (tries_scheduler) {
    const auto scheduler = algorithms.MakeScheduler(spec);
    if (!scheduler.ok()) AddError(scheduler.error(), root, "scheduler", faults);
  }
}

}  // namespace

std::optional<Fault> FaultOf(const Error& error, std::string_view text) {
  const Document document = ReadDocument(text);
  if (!document.root) return std::nullopt;
  std::vector<Fault> found;
  Faults faults(found);
  AddError(error, *document.root, "", faults);
  return found.front().pointer.empty() ? std::nullopt : std::optional(found.front());
}

Parsed ParseSweep(std::string_view text, const ParseOptions& options) {
  return ParseDocument(ReadDocument(text), options);
}

Parsed ParseDocument(Document document, const ParseOptions& options) {
  ATTUNE_CHECK(options.algorithms != nullptr);
  Parsed parsed;
  parsed.faults = std::move(document.faults);
  Faults faults(parsed.faults, document.unlisted);
  if (document.root && document.root->kind == Node::Kind::kMap) {
    SpecReader reader(*document.root, options.algorithms, faults);
    Completion(options, reader, faults).Run();
    TryAlgorithms(reader.spec(), *options.algorithms, *document.root, parsed.faults, faults);
    if (parsed.faults.empty()) parsed.spec = std::move(reader.spec());
  } else if (parsed.faults.empty()) {
    const bool empty = !document.root || document.root->kind == Node::Kind::kNull;
    faults.Add({}, empty ? Mark{} : document.root->mark,
               empty ? "the file is empty; add metric, parameters and, if Attune should run a "
                       "program, command"
                     : "expected a map of keys such as command, metric and parameters, found " +
                           Describe(*document.root));
  }
  std::stable_sort(parsed.faults.begin(), parsed.faults.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  faults.Close();
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
