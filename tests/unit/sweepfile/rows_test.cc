#include <cstdlib>
#include <map>
#include <random>

#include "base/result.h"
#include "core/log/fields.h"
#include "core/space/draw.h"
#include "sweepfile/codec.h"
#include "sweepfile/keys.h"
#include "tests/support/draw_spec.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

constexpr int kSpecs = 2'000;

SearchSpace DrawSpace(testing::MemberDraw& draw) {
  std::vector<Parameter> parameters{
      {.name = "lr", .domain = FloatDomain{.min = 1e-5, .max = 0.1 + 0.2, .scale = Scale::kLog}},
      {.name = "optimizer", .domain = CategoricalDomain{{Value("sgd"), Value("no"), Value(true)}}},
      {.name = "layers", .domain = IntDomain{.min = 1, .max = 9, .step = 2}},
      {.name = "a.b", .domain = ConstantDomain{-0.0}}};
  if (draw.OneIn(2))
    parameters.push_back({.name = "momentum",
                          .domain = FloatDomain{.min = -1, .max = 1, .step = 0.25},
                          .when = {{.parent = "optimizer", .any_of = {Value("no"), Value(true)}},
                                   {.parent = "layers", .at_least = 2.5}}});
  return SearchSpace(std::move(parameters));
}

// Replaces values that exclude each other, which the rows cannot express.
void Reconcile(testing::MemberDraw& draw, SweepSpec& spec) {
  spec.program.command.insert(spec.program.command.begin(), "/bin/train");
  spec.program.working_directory = "/home/" + spec.program.working_directory;
  if (auto& code = spec.program.code) {
    spec.program.working_directory = "sub/folder";
    code->digest = draw.OneIn(2) ? "sha256:" + std::string(64, 'a') : "";
    code->commit = code->digest.empty() ? "" : std::string(40, 'b');
    code->dirty = code->dirty && !code->digest.empty();
    if (code->digest.empty()) code->patched.clear();
    for (PatchedCode& patched : code->patched) patched.digest = "sha256:" + std::string(64, 'c');
  }
  if (auto& packages = spec.program.packages) {
    packages->python = spec.program.code ? "requirements.txt" : "/srv/uv.lock";
    packages->wheels = draw.OneIn(2) ? "/srv/wheels" : "";
    packages->container.clear();
    packages->engine = ContainerEngine::kAny;
    if (draw.OneIn(2))
      *packages = {.container = "docker.io/a/b:c", .engine = ContainerEngine::kDocker};
  }
  for (size_t i = 0; i < spec.program.data.size(); ++i)
    spec.program.data[i] = {.name = "a" + std::to_string(i),
                            .url = "https://host/" + std::to_string(i),
                            .sha256 = std::string(64, 'd')};
  std::string groups;
  for (const std::string& name : draw.MetricNames()) groups += "(?P<" + name + ">.)";
  spec.program.report_pattern = draw.OneIn(2) ? groups : "";
  for (size_t i = 0; i < spec.program.secrets.size(); ++i)
    spec.program.secrets[i] = "SECRET_" + std::to_string(i);
  for (Constraint& bounds : spec.constraints) {
    if (!bounds.min && !bounds.max) bounds.min = 0.5;
    if (bounds.min && bounds.max && *bounds.min > *bounds.max) std::swap(bounds.min, bounds.max);
  }
  for (Threshold& bounds : spec.stop.thresholds) {
    if (!bounds.at_least && !bounds.at_most) bounds.at_most = 0.5;
    if (bounds.at_least && bounds.at_most && *bounds.at_least <= *bounds.at_most)
      bounds.at_most = *bounds.at_least - 1;
  }
  for (size_t i = 0; i < spec.failure.on_log.size(); ++i)
    spec.failure.on_log[i].pattern = "ECC|Xid " + std::to_string(i);
  if (auto& plateau = spec.stop.plateau; plateau && plateau->std) {
    plateau->min_delta = 0;
    plateau->patience = std::max(plateau->patience, 2);
  }
  GangSpec& gang = spec.gang;
  gang.per_worker.gpus = static_cast<int>(draw.Between(0, 9));
  if (draw.OneIn(4)) {
    gang.per_worker.gpus = gang.workers = 1;
    gang.gpu_percent = static_cast<int>(draw.Between(1, 99));
  }
  if (gang.min_workers >= gang.workers) {
    gang.min_workers = 0;
    gang.grow_after = GangSpec{}.grow_after;
    gang.grow = GangSpec{}.grow;
  }
}

void DrawSearch(testing::MemberDraw& draw, SweepSpec& spec) {
  spec.objectives.clear();
  for (int64_t left = draw.Between(1, 3); left > 0; --left) {
    Objective& objective = spec.objectives.emplace_back();
    draw.Keys(objective);
    objective.metric = draw.MetricNames()[static_cast<size_t>(left)];
    if (draw.OneIn(2)) {
      spec.stop.targets.resize(spec.objectives.size());
      spec.stop.targets.back() = 0.1 * static_cast<double>(left);
    }
  }
  spec.space = DrawSpace(draw);
  for (int64_t left = draw.Between(0, 2); left > 0; --left) {
    RandomStream stream(spec.seed, TrialNumber(static_cast<uint32_t>(left)), "initial_points");
    spec.initial_points.push_back(Complete(spec.space, {}, stream).value());
  }
  spec.searcher = {.name = spec.warm_start.empty() ? "random" : "auto"};
  spec.scheduler = {.name = "fifo"};
  if (draw.OneIn(2)) {
    spec.scheduler = {.name = "asha",
                      .options = {{"min", draw.Between(1, 3)},
                                  {"mode", std::string("promote")},
                                  {"reduction_factor", draw.Between(2, 9)},
                                  {"brackets", int64_t{1}}}};
    spec.max_step = Step(spec.max_step.value / 2 + 100);
  }
  spec.stop.max_trials = std::max(spec.stop.max_trials, 1);
}

void ForgetProgram(SweepSpec& spec) {
  const SweepSpec none;
  ForEachKey<SweepSpec>([&](const auto& row) {
    if (row.key.of_program) row.FieldIn(spec) = row.FieldIn(none);
  });
  spec.gang = none.gang;
}

SweepSpec DrawSpec(testing::MemberDraw& draw) {
  SweepSpec spec;
  draw.Keys(spec);
  DrawSearch(draw, spec);
  Reconcile(draw, spec);
  if (draw.OneIn(5)) ForgetProgram(spec);
  return spec;
}

TEST(Rows, EveryKeyComesBackFromYamlJsonAndBytes) {
  const char* given = std::getenv("ATTUNE_SEED");
  const uint64_t seed = given == nullptr ? 20261127 : std::strtoull(given, nullptr, 10);
  SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  testing::MemberDraw draw(random);
  const SweepSpec initial;
  std::map<std::string, int> changed;
  for (int i = 0; i < kSpecs; ++i) {
    const SweepSpec spec = DrawSpec(draw);
    ForEachKey<SweepSpec>([&](const auto& row) {
      changed[row.key.name] += row.FieldIn(spec) == row.FieldIn(initial) ? 0 : 1;
    });

    const std::string yaml = ResolvedYaml(spec);
    const Parsed parsed = Parse(yaml);
    ASSERT_EQ(FaultLines(parsed), "") << yaml;
    ASSERT_EQ(ToJson(*parsed.spec).dump(1), ToJson(spec).dump(1));
    ASSERT_EQ(*parsed.spec, spec) << yaml;

    const Result<SweepSpec> decoded = SpecFromJson(Json::parse(ToJson(spec).dump()));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message << "\n" << yaml;
    ASSERT_EQ(*decoded, spec) << yaml;

    ArchiveWriter writer;
    writer(spec);
    const std::string bytes = writer.Take();
    ArchiveReader reader(bytes);
    SweepSpec loaded;
    reader(loaded);
    ASSERT_TRUE(reader.AtEnd()) << yaml;
    ASSERT_EQ(loaded, spec) << yaml;
  }
  for (const auto& [key, count] : changed) EXPECT_GT(count, kSpecs / 10) << key;
}

TEST(Rows, EachKeyIsInItsSectionOfTheReference) {
  std::map<std::string, int> keys;
  for (const Section& section : AllSections(AllAlgorithms())) {
    for (const Key& key : section.keys)
      ++keys[section.name + (section.name.empty() ? "" : ".") + key.name];
  }
  ForEachKey<SweepSpec>([&](const auto& row) { EXPECT_EQ(keys[row.key.name], 1) << row.key.name; });
}

}  // namespace
}  // namespace attune::sweepfile
