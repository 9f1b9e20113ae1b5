// Measures how many reports per second become durable, and after how long, from an executor's
// stream to the log on disk: gRPC over loopback, the brain, and SQLite with synchronous=FULL, in
// one process. Also measures the server's memory while an executor sends more than the disk can
// store.
//
//     report_rate [REPORTS [SECONDS [FLOOD]]]

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "base/version.h"
#include "benchmarks/arguments.h"
#include "benchmarks/bench_sweep.h"
#include "schedulers/register.h"
#include "searchers/random.h"
#include "searchers/register.h"
#include "server/conductor/proposal_runner.h"
#include "server/conductor/thread_pool.h"
#include "server/rpc/rpc_server.h"
#include "server/store/sqlite_store.h"

namespace attune::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTrials = 64;
constexpr int kReportsPerBatch = 1'000;
constexpr int kReportsPerSecond = 1'000;  // when latency is measured
constexpr int kSlowTrialsMax = 1'000;
constexpr uint64_t kReportsInFlightMax = 20'000;

constexpr std::chrono::milliseconds kThinkTime{200};

// Needs kThinkTime for each proposal, like a model. It sleeps, because the benchmark measures
// whether reports wait for it, not the number of processors.
class SlowSearcher final : public Searcher {
 public:
  explicit SlowSearcher(const SweepSpec& spec) : random_(spec.space, spec.seed) {}
  bool NeedsThread() const override { return true; }
  Suggestion Suggest(ProposalNumber proposal) const override {
    std::this_thread::sleep_for(kThinkTime);
    return random_.Suggest(proposal);
  }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec& spec) override { random_.Adapt(spec); }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  searchers::Random random_;
};

SweepSpec Spec() {
  SweepSpec spec = BenchSweep();
  spec.stop.max_trials = kTrials;
  return spec;
}

Time Now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
}

// A disk with a third of the speed: each write is followed by a pause of twice its duration.
class SlowStore final : public EventStore {
 public:
  explicit SlowStore(EventStore& store) : store_(store) {}

  Status Append(std::span<const Event> batch) override {
    const auto began = Clock::now();
    Status written = store_.Append(batch);
    if (slow) std::this_thread::sleep_for(2 * (Clock::now() - began));
    return written;
  }
  Status AppendFromReserve(std::span<const Event> batch) override {
    return store_.AppendFromReserve(batch);
  }
  EventSeq LastSeq() const override { return store_.LastSeq(); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    return store_.Read(after, visit);
  }
  Status SaveSnapshot(const Snapshot& snapshot) override { return store_.SaveSnapshot(snapshot); }
  Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    return store_.ReadSnapshot(at_most);
  }
  Result<std::string> ReadEnded(const EndedSweepData& part) const override {
    return store_.ReadEnded(part);
  }
  Status Probe() override { return store_.Probe(); }

  bool slow = false;

 private:
  EventStore& store_;
};

// A server without HTTP. Its data is below the working folder, so on a disk and not in memory.
class BareServer {
 public:
  explicit BareServer(bool slow = false) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    searchers::RegisterSearchers(algorithms_);
    schedulers::RegisterSchedulers(algorithms_);
    store_ = *SqliteStore::Open((folder_ / "attune.db").string());
    slow_ = std::make_unique<SlowStore>(*store_);
    slow_->slow = slow;
    algorithms_.Add(Entry<Searcher>{.name = "slow", .make = [](const SweepSpec& spec) {
                                      return Result<std::unique_ptr<Searcher>>(
                                          std::make_unique<SlowSearcher>(spec));
                                    }});
    conductor_ = std::make_unique<Conductor>(algorithms_, *slow_, Now);
    proposal_runner_ = std::make_unique<ProposalRunner>(
        *conductor_, [this](std::function<void()> job) { threads_.Run(std::move(job)); });
    conductor_->Subscribe(proposal_runner_.get());
    const std::chrono::milliseconds lease_ttl{60'000};
    service_ = std::make_unique<ExecutorService>(
        *conductor_, ExecutorService::Options{
                         .may_join = [](const std::string& token) { return token == "secret"; },
                         .lease_ttl = lease_ttl});
    ATTUNE_CHECK(conductor_->Start().ok());
    rpc_ = *RpcServer::Start(*service_, {.host = "127.0.0.1", .lease_ttl = lease_ttl});
    ATTUNE_CHECK(conductor_->Execute(CreateSweep{Spec(), "", ""}).ok());
  }

  ~BareServer() {
    threads_.Stop();
    conductor_->Stop();
    rpc_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Creates another sweep, whose searcher computes proposals without a pause.
  void StartSlowSweep() {
    SweepSpec spec = Spec();
    spec.searcher.name = "slow";
    spec.stop.max_trials = kSlowTrialsMax;
    ATTUNE_CHECK(conductor_->Execute(CreateSweep{spec, "", ""}).ok());
  }
  int CountSlowTrials() {
    int created = 0;
    conductor_->Query([&](const Brain& brain) {
      created = brain.state().sweeps.at(brain.state().last_sweep).created;
    });
    return created;
  }

  std::string target() const { return "127.0.0.1:" + std::to_string(rpc_->port()); }

 private:
  const std::filesystem::path folder_ = std::filesystem::current_path() / "report-rate-data";
  Algorithms algorithms_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<SlowStore> slow_;
  std::unique_ptr<Conductor> conductor_;
  ThreadPool threads_{1};
  std::unique_ptr<ProposalRunner> proposal_runner_;
  std::unique_ptr<ExecutorService> service_;
  std::unique_ptr<RpcServer> rpc_;
};

// An executor that reports for each of its trials in turn.
class Reporter {
 public:
  explicit Reporter(const std::string& target)
      : stub_(v1::Executors::NewStub(
            grpc::CreateChannel(target, grpc::InsecureChannelCredentials()))),
        stream_(stub_->Connect(&context_)) {
    v1::FromExecutor message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_token("secret");
    hello.set_format(kFormat);
    hello.set_name("bench");
    hello.set_instance("1");
    hello.mutable_resources()->set_cpus(kTrials + kSlowTrialsMax);
    stream_->Write(message);
    v1::ToExecutor answer;
    while (stream_->Read(&answer) && answer.desired().assignments_size() < kTrials) {
    }
    for (const v1::Assignment& assignment : answer.desired().assignments()) {
      attempts_.push_back(assignment.attempt());
    }
    reader_ = std::thread([this] { ReadAcks(); });
  }

  ~Reporter() {
    context_.TryCancel();
    reader_.join();
    stream_->Finish();
  }

  // Sends reports without waiting, and does not record their latency.
  void Flood(int reports) {
    MakeMessage(reports);
    {
      const std::lock_guard lock(mutex_);
      sent_ = seq_;
    }
    ATTUNE_CHECK(stream_->Write(message_));
  }

  void Send(int reports) {
    MakeMessage(reports);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return sent_ - durable_ < kReportsInFlightMax; });
      sent_at_.resize(seq_ + 1, Clock::now());
      sent_ = seq_;
    }
    ATTUNE_CHECK(stream_->Write(message_));
  }

  // Waits until all reports are durable.
  void Finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return durable_ == sent_; });
  }

  // The time in milliseconds from Send until each report was durable, in increasing order.
  std::vector<double> Latencies() const {
    std::vector<double> latencies;
    for (uint64_t seq = 1; seq <= seq_; ++seq) {
      const std::chrono::duration<double, std::milli> took = durable_at_[seq] - sent_at_[seq];
      latencies.push_back(took.count());
    }
    std::ranges::sort(latencies);
    return latencies;
  }

 private:
  void MakeMessage(int reports) {
    v1::Facts& facts = *message_.mutable_facts();
    while (facts.facts_size() > reports) facts.mutable_facts()->RemoveLast();
    while (facts.facts_size() < reports) AddFact(facts);
    for (v1::Fact& fact : *facts.mutable_facts()) Fill(fact);
  }

  static void AddFact(v1::Facts& facts) {
    v1::Report& report = *facts.add_facts()->mutable_report();
    report.add_metrics()->set_name("loss");
    report.add_metrics()->set_name("accuracy");
  }

  void Fill(v1::Fact& fact) {
    fact.set_seq(++seq_);
    *fact.mutable_attempt() = attempts_[seq_ % attempts_.size()];
    v1::Report& report = *fact.mutable_report();
    report.set_step(static_cast<int64_t>(1 + seq_ / attempts_.size()));
    report.set_seconds(0.1 * static_cast<double>(seq_));
    report.mutable_metrics(0)->set_value(1.0 / static_cast<double>(seq_));
    report.mutable_metrics(1)->set_value(1 - 1.0 / static_cast<double>(seq_));
  }

  void ReadAcks() {
    v1::ToExecutor message;
    while (stream_->Read(&message)) {
      if (!message.has_ack()) continue;
      const std::lock_guard lock(mutex_);
      if (!sent_at_.empty()) durable_at_.resize(message.ack().seq() + 1, Clock::now());
      durable_ = message.ack().seq();
      changed_.notify_all();
    }
  }

  grpc::ClientContext context_;
  std::unique_ptr<v1::Executors::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::FromExecutor, v1::ToExecutor>> stream_;
  std::vector<v1::AttemptRef> attempts_;
  v1::FromExecutor message_;
  uint64_t seq_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t sent_ = 0;
  uint64_t durable_ = 0;
  std::vector<Clock::time_point> sent_at_;
  std::vector<Clock::time_point> durable_at_;
  std::thread reader_;
};

void MeasureRate(int reports) {
  BareServer server;
  Reporter reporter(server.target());
  const auto began = Clock::now();
  for (int sent = 0; sent < reports; sent += kReportsPerBatch) reporter.Send(kReportsPerBatch);
  reporter.Finish();
  const std::chrono::duration<double> took = Clock::now() - began;
  std::printf("%d reports of %d trials in batches of %d: %.0f durable reports/s\n", reports,
              kTrials, kReportsPerBatch, reports / took.count());
}

void MeasureLatency(int seconds, bool with_slow_sweep) {
  BareServer server;
  Reporter reporter(server.target());
  if (with_slow_sweep) server.StartSlowSweep();
  auto next = Clock::now();
  for (int sent = 0; sent < seconds * kReportsPerSecond; ++sent) {
    reporter.Send(1);
    next += std::chrono::microseconds(1'000'000 / kReportsPerSecond);
    std::this_thread::sleep_until(next);
  }
  reporter.Finish();
  const std::vector<double> took = reporter.Latencies();
  const auto at = [&](double share) {
    return took[static_cast<size_t>(share * static_cast<double>(took.size() - 1))];
  };
  std::printf(
      "%d reports/s, one at a time: durable after %.2f ms (median), %.2f ms (p99), "
      "%.2f ms (worst)\n",
      kReportsPerSecond, at(0.5), at(0.99), at(1));
  if (with_slow_sweep)
    std::printf("  while a searcher proposed %d trials, %lld ms each\n", server.CountSlowTrials(),
                static_cast<long long>(kThinkTime.count()));
}

// Peak resident memory of this process since the last call, in bytes.
size_t PeakMemory() {
  size_t peak_kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) peak_kib = std::stoul(line.substr(6));
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return peak_kib * 1024;
}

// The executor runs in this process, too, so the memory includes the executor's.
void MeasureFlood(int reports) {
  BareServer server(/*slow=*/true);
  Reporter reporter(server.target());
  PeakMemory();
  const auto began = Clock::now();
  for (int sent = 0; sent < reports; sent += kReportsPerBatch) reporter.Flood(kReportsPerBatch);
  const std::chrono::duration<double> sending = Clock::now() - began;
  reporter.Finish();
  const std::chrono::duration<double> took = Clock::now() - began;
  std::printf(
      "%d reports, faster than a slow disk stores them: sent in %.1f s, durable after %.1f s, "
      "at most %.0f MB resident\n",
      reports, sending.count(), took.count(), static_cast<double>(PeakMemory()) / 1e6);
}

}  // namespace
}  // namespace attune::server

int main(int argc, char** argv) {
  const auto count = [&](int index, int fallback) {
    return attune::benchmarks::CountArgument(argc, argv, index, fallback,
                                             "report_rate [REPORTS [SECONDS [FLOOD]]]");
  };
  const int reports = count(1, 500'000);
  const int seconds = count(2, 10);
  const int flood = count(3, 1'000'000);
  attune::server::MeasureRate(reports);
  attune::server::MeasureLatency(seconds, false);
  attune::server::MeasureLatency(seconds, true);
  attune::server::MeasureFlood(flood);
}
