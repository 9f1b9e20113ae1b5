#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "benchmarks/bench_sweep.h"
#include "server/store/event_codec.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "server/store/thinned/curve_table.h"

namespace attune::server {
namespace {

constexpr int kBatch = 1'000;         // events of one transaction
constexpr int kLogReports = 200'000;  // reports in the log that ReadTheLog reads

// A folder below the working folder, so that data goes to a disk and not to a folder in memory.
class ScratchFolder {
 public:
  ScratchFolder() : path_(std::filesystem::current_path() / "store-bench-data") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string database() const { return (path_ / "attune.db").string(); }

 private:
  std::filesystem::path path_;
};

// A log of trials that take turns in reporting two metrics at full precision.
class Reports {
 public:
  explicit Reports(uint32_t trials) : trials_(trials) {
    Add(SweepCreated{SweepId(1), BenchSweep(), "", ""});
    for (uint32_t i = 0; i < trials; ++i) {
      const TrialId trial(SweepId(1), TrialNumber(i));
      Add(TrialCreated{.trial = trial, .config = {{"lr", 0.1}, {"width", int64_t{32}}}});
      Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(i + 1)});
    }
  }

  // The events before the first report.
  std::vector<Event> TakeBeginning() { return std::exchange(events_, {}); }

  const std::vector<Event>& NextBatch() {
    events_.clear();
    for (int i = 0; i < kBatch; ++i) {
      const TrialId trial(SweepId(1), TrialNumber(static_cast<uint32_t>(reports_ % trials_)));
      const int64_t step = 1 + reports_++ / trials_;
      const double loss = 1.0 / (3.0 + static_cast<double>(step));
      Add(TrialReported{.attempt = {trial, 1},
                        .report = {.step = Step(step),
                                   .metrics = {{"accuracy", 1.0 - loss}, {"loss", loss}},
                                   .seconds = Seconds(0.7 * static_cast<double>(step))}});
    }
    return events_;
  }

 private:
  void Add(Fact fact) {
    ++seq_;
    const auto at = static_cast<int64_t>(1'795'255'200'000'000 + seq_ * 10);
    events_.push_back({EventSeq(seq_), Time{at}, std::move(fact)});
  }

  int64_t trials_;
  int64_t reports_ = 0;
  uint64_t seq_ = 0;
  std::vector<Event> events_;
};

void CheckOk(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  ATTUNE_CHECK(status.ok());
}

std::unique_ptr<SqliteStore> NewStore(const ScratchFolder& folder, Reports& reports) {
  auto store = SqliteStore::Open(folder.database());
  ATTUNE_CHECK(store.ok());
  CheckOk((*store)->Append(reports.TakeBeginning()));
  return std::move(store).value();
}

// Growth of the database file (log and indices) per report.
double BytesPerReport(const std::string& path, uint64_t before, int64_t reports) {
  auto connection =
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
  CheckOk(connection->Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  return static_cast<double>(std::filesystem::file_size(path) - before) /
         static_cast<double>(reports);
}

// Appends batches of 1,000 reports of state.range(0) trials in turn. Each batch is durable before
// the next.
void AppendReports(benchmark::State& state) {
  const ScratchFolder folder;
  Reports reports(static_cast<uint32_t>(state.range(0)));
  auto store = NewStore(folder, reports);
  const uint64_t before = std::filesystem::file_size(folder.database());
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<Event>& batch = reports.NextBatch();
    state.ResumeTiming();
    CheckOk(store->Append(batch));
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
  state.counters["bytes_per_report"] =
      BytesPerReport(folder.database(), before, state.iterations() * kBatch);
}
BENCHMARK(AppendReports)->Arg(10)->Arg(100)->Arg(1'000)->Arg(100'000)->UseRealTime()->MinTime(2);

// Follows batches of 1,000 reports of state.range(0) trials in turn, and writes their thinned
// curves after each batch.
void FollowReports(benchmark::State& state) {
  const ScratchFolder folder;
  Reports reports(static_cast<uint32_t>(state.range(0)));
  auto store = NewStore(folder, reports);
  auto table = CurveTable::Open(folder.database(), LogIdentity(0), store->LastSeq());
  ATTUNE_CHECK(table.ok());
  for (auto _ : state) {
    state.PauseTiming();
    CheckOk(store->Append(reports.NextBatch()));
    state.ResumeTiming();
    ATTUNE_CHECK((*table)->Read(store->LastSeq(), 2 * store->LastSeq().value).ok());
    CheckOk((*table)->Write(true));
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(FollowReports)->Arg(10)->Arg(1'000)->Arg(10'000)->UseRealTime()->MinTime(2);

void ReadTheLog(benchmark::State& state) {
  const ScratchFolder folder;
  Reports reports(100);
  auto store = NewStore(folder, reports);
  for (int i = 0; i < kLogReports / kBatch; ++i) CheckOk(store->Append(reports.NextBatch()));
  for (auto _ : state) {
    uint64_t checksum = 0;
    CheckOk(store->Read(EventSeq(0), [&](const Event& event) { checksum += event.seq.value; }));
    benchmark::DoNotOptimize(checksum);
  }
  state.SetItemsProcessed(state.iterations() * kLogReports);
}
BENCHMARK(ReadTheLog)->Unit(benchmark::kMillisecond)->UseRealTime();

void DecodeReports(benchmark::State& state) {
  Reports reports(100);
  std::vector<EncodedFact> rows;
  for (const Event& event : reports.NextBatch()) rows.push_back(Encode(event.fact));
  for (auto _ : state) {
    for (const EncodedFact& row : rows) {
      auto fact = Decode({.kind = row.kind,
                          .version = row.version,
                          .sweep = row.sweep,
                          .trial = row.trial,
                          .payload = row.payload});
      benchmark::DoNotOptimize(fact);
    }
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(rows));
}
BENCHMARK(DecodeReports);

}  // namespace
}  // namespace attune::server
