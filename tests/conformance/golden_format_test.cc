#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/algorithms.h"
#include "core/brain/brain.h"
#include "server/store/event_codec.h"
#include "server/store/offline/check.h"
#include "server/store/sqlite_store.h"
#include "system/files.h"
#include "tests/support/every_fact.h"
#include "tests/support/scratch_folder.h"

// Each golden database (tests/data/format-1/README.md) must open. Its decisions can be derived
// again, and its sweeps continue.
namespace attune::server {
namespace {

namespace fs = std::filesystem;

constexpr int kRoundsMax = 200;  // a sweep that has not ended after this many rounds is killed

const std::string kGolden = ATTUNE_SOURCE_DIR "/tests/data/format-1/";

std::vector<std::string> GoldenDatabases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".db.gz")) names.push_back(name.substr(0, name.size() - 6));
  }
  std::ranges::sort(names);
  return names;
}

std::string Unpacked(const std::string& path) {
  std::string bytes;
  const gzFile file = gzopen(path.c_str(), "rb");
  char buffer[65536];
  for (int got = 0; (got = gzread(file, buffer, sizeof(buffer))) > 0;)
    bytes.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  return bytes;
}

// One line for each kind of event. Its payload has every field.
std::string EveryKind() {
  std::map<std::string, std::string, std::less<>> lines;
  for (const Fact& fact : attune::testing::EveryFact()) {
    const EncodedFact encoded = Encode(fact);
    lines.try_emplace(std::string(encoded.kind),
                      std::to_string(encoded.version) + ' ' + encoded.payload);
  }
  std::string text;
  for (const auto& [kind, line] : lines) text += kind + ' ' + line + '\n';
  return text;
}

TEST(GoldenEvents, EncodesEveryKindAsInTheFile) {
  const std::string path = kGolden + "events.txt";
  if (std::getenv("ATTUNE_WRITE_GOLDEN") != nullptr) std::ofstream(path) << EveryKind();
  EXPECT_EQ(EveryKind(), ReadWhole(path).value()) << "see tests/data/format-1/README.md";
}

class GoldenFormat : public ::testing::TestWithParam<std::string> {
 protected:
  GoldenFormat()
      : brain_(std::make_unique<Brain>(cli::AllAlgorithms(),
                                       [](const std::string&) { return true; })) {
    std::ofstream(path_, std::ios::binary) << Unpacked(kGolden + GetParam() + ".db.gz");
  }

  void Open() {
    store_ = SqliteStore::Open(path_).value();
    const Status read =
        store_->Read(EventSeq(0), [&](const Event& event) { brain_->Replay(event); });
    ASSERT_TRUE(read.ok()) << read.error().message;
    now_ = brain_->state().last_time;
  }

  void ExpectNoFault() {
    auto findings = CheckDatabase(path_).value();
    findings.push_back(CheckDecisions(path_, cli::AllAlgorithms()).value());
    for (const Finding& finding : findings)
      EXPECT_EQ(finding.fault, std::nullopt) << finding.what << ": " << *finding.fault;
    EXPECT_NE(findings.back().seen, "0 proposals, 0 verdicts");
  }

  void Keep(const std::vector<Event>& events) {
    const Status kept = store_->Append(events);
    ASSERT_TRUE(kept.ok()) << kept.error().message;
  }

  void Do(const Command& command) {
    now_.us += 1'000'000;
    auto events = brain_->Execute(command, now_);
    ASSERT_TRUE(events.ok()) << events.error().message;
    Keep(*events);
    Keep(brain_->Advance(now_));
  }

  // Reports one step of every gang, like an executor or an ask/tell client.
  void Step(const Sweep& sweep) {
    for (const TrialNumber number : std::set(sweep.live)) {
      const Trial& trial = *sweep.Find(number);
      const Attempt attempt = *trial.live;
      if (attempt.verdict != VerdictKind::kContinue || !ShouldRun(trial)) {
        Do(RecordFact{attempt.epoch, AttemptEnded{attempt.id, Outcome::kStopped, {}}});
        continue;
      }
      const attune::Step step(trial.last_step.value + 1);
      if (!attempt.ranks.empty())
        Do(RecordFact{attempt.epoch,
                      CheckpointSaved{attempt.id, {step, "/tmp/checkpoint", "sha256:0"}, 1}});
      const std::string& metric = sweep.spec.objective().metric;
      Report report{.step = step, .waits = true};
      report.metrics[metric] = 1.0 / (1.0 + number.value);
      Do(RecordFact{attempt.epoch, TrialReported{attempt.id, report}});
    }
  }

  void Continue(SweepId id) {
    for (int round = 0; round < kRoundsMax && brain_->state().Find(id) != nullptr; ++round) {
      const Sweep& sweep = *brain_->state().Find(id);
      if (sweep.spec.External() && sweep.live.empty()) Do(AskTrial{id, ""});
      if (brain_->state().Find(id) != nullptr) Step(*brain_->state().Find(id));
    }
    if (brain_->state().Find(id) == nullptr) return;
    Do(KillSweep{id});
    if (brain_->state().Find(id) != nullptr) Step(*brain_->state().Find(id));
    EXPECT_EQ(brain_->state().Find(id), nullptr) << "sweep " << ToString(id) << " still runs";
  }

  const attune::testing::ScratchFolder folder_;
  const std::string path_ = folder_ / "attune.db";
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<Brain> brain_;
  Time now_;
};

TEST_P(GoldenFormat, EncodesEachEventAsItWasStored) {
  auto connection = sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly, 0).value();
  sqlite::Rows rows = connection->Query("SELECT kind, version, sweep, trial, payload FROM events");
  int count = 0;
  for (; rows.Next(); ++count) {
    StoredFact stored{.kind = rows.Text(0), .version = rows.Integer(1), .payload = rows.Text(4)};
    if (!rows.Null(2)) stored.sweep = SweepId(static_cast<uint64_t>(rows.Integer(2)));
    if (!rows.Null(3)) stored.trial = TrialNumber(static_cast<uint32_t>(rows.Integer(3)));
    const auto fact = Decode(stored);
    ASSERT_TRUE(fact.ok()) << fact.error().message;
    const EncodedFact encoded = Encode(*fact);
    EXPECT_EQ(encoded.version, stored.version) << stored.kind;
    EXPECT_EQ(encoded.payload, stored.payload) << stored.kind;
  }
  EXPECT_TRUE(rows.status().ok());
  EXPECT_GT(count, 40);
}

TEST_P(GoldenFormat, OpensAndRederivesItsDecisions) {
  Open();
  ExpectNoFault();
}

TEST_P(GoldenFormat, ContinuesItsSweeps) {
  Open();
  Do(JoinExecutor{"box", "a new process", "127.0.0.1", {.cpus = 8, .memory_bytes = 1 << 30}});
  std::vector<SweepId> sweeps;
  for (const auto& [id, sweep] : brain_->state().sweeps) sweeps.push_back(id);
  std::vector<SweepId> ended;
  for (const auto& [id, sweep] : brain_->state().ended) ended.push_back(id);
  for (const SweepId id : ended) {
    Do(ExtendSweep{.sweep = id, .max_trials = 20});
    EXPECT_NE(brain_->state().Find(id), nullptr) << "not open again";
    Continue(id);
  }
  for (const SweepId id : sweeps) Continue(id);
  EXPECT_TRUE(brain_->state().sweeps.empty());

  Brain again(cli::AllAlgorithms(), [](const std::string&) { return true; });
  ASSERT_TRUE(store_->Read(EventSeq(0), [&](const Event& event) { again.Replay(event); }).ok());
  EXPECT_EQ(SaveState(again.state()), SaveState(brain_->state()));
  ExpectNoFault();
}

INSTANTIATE_TEST_SUITE_P(Databases, GoldenFormat, ::testing::ValuesIn(GoldenDatabases()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace attune::server
