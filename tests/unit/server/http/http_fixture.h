#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/http_server.h"
#include "server/store/json.h"
#include "server/store/sqlite_store.h"
#include "tests/unit/server/store/sample_log.h"

namespace attune::server {

// A backend that writes to a real store, and otherwise says what a test told it to.
class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(const std::string& path) : store_(SqliteStore::Open(path).value()) {
    Append(log_.events());
  }

  void Append(const std::vector<Event>& events) {
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(store_->Append(events).ok());
    last_ = store_->last_seq();
    changed_.notify_all();
  }
  void Add(Fact fact) { Append({log_.Next(std::move(fact))}); }
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  Result<SweepId> CreateSweep(NewSweep sweep) override {
    created.push_back(sweep);
    if (!refusal.ok()) return refusal.error();
    if (sweep.idempotency_key == "key-1") return SweepId(1);
    Add(SweepCreated{.sweep = SweepId(2),
                     .spec = sweep.spec,
                     .source = sweep.source,
                     .idempotency_key = sweep.idempotency_key});
    return SweepId(2);
  }
  Status StopSweep(SweepId sweep) override {
    stopped.push_back(sweep);
    return refusal;
  }
  Status KillSweep(SweepId sweep) override {
    killed.push_back(sweep);
    return refusal;
  }
  std::string Waiting(SweepId) override { return "needs 2 CPUs; 0 are free on box"; }
  std::vector<ExecutorStatus> Executors() override {
    return {{.name = "box",
             .state = "online",
             .address = "127.0.0.1",
             .total = {.cpus = 2, .memory_bytes = 25'165'824'000},
             .free = {.cpus = 1}}};
  }
  Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                           uint32_t limit_bytes) override {
    if (!refusal.ok()) return refusal.error();
    return LogSlice{.data = ToString(attempt) + " " + std::to_string(rank) + " " +
                            std::to_string(offset) + " " + std::to_string(limit_bytes) + "\n",
                    .offset = 17,
                    .file_bytes = 40};
  }
  Status Ready() override { return refusal; }
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) override {
    std::unique_lock lock(mutex_);
    ++waits_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                      [&] { return stopped_ || last_ > seq; });
    return last_;
  }
  // Until a stream has nothing more to send.
  void AwaitWaiter() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(10),
                                  [&, before = waits_] { return waits_ > before; }));
  }

  Status refusal;  // the answer to everything that can be refused
  std::vector<NewSweep> created;
  std::vector<SweepId> stopped;
  std::vector<SweepId> killed;

 private:
  SampleLog log_;
  std::unique_ptr<SqliteStore> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  EventSeq last_{0};
  int waits_ = 0;
  bool stopped_ = false;
};

class NoSearcher final : public Searcher {
 public:
  std::optional<Config> Suggest(TrialNumber) const override { return std::nullopt; }
  void Observe(const Event&) override {}
};

class ThreeRungs final : public Scheduler {
 public:
  Verdict Judge(const TrialView&, const Report&) const override { return Verdict::Continue(""); }
  std::optional<Step> NextMilestone(const TrialView&, Step) const override { return std::nullopt; }
  void Observe(const Event&) override {}
  std::vector<Step> Rungs() const override { return {Step(1), Step(3), Step(9)}; }
};

inline Algorithms FakeAlgorithms() {
  Algorithms algorithms;
  algorithms.Add(
      Entry<Searcher>{"random", "", {}, [](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
                        return std::unique_ptr<Searcher>(std::make_unique<NoSearcher>());
                      }});
  algorithms.Add(Entry<Scheduler>{"asha",
                                  "",
                                  {{.name = "reduction_factor", .fallback = Value(int64_t{3})}},
                                  [](const SweepSpec&) -> Result<std::unique_ptr<Scheduler>> {
                                    return std::unique_ptr<Scheduler>(
                                        std::make_unique<ThreeRungs>());
                                  }});
  return algorithms;
}

inline constexpr std::string_view kToken = "0123456789abcdef";

// A server on a free port over the sample log, and a client that shows the token.
class HttpFixture : public ::testing::Test {
 protected:
  HttpFixture()
      : backend_(folder_ / "attune.db"),
        algorithms_(FakeAlgorithms()),
        reader_(Reader::Open(folder_ / "attune.db").value()) {
    auto server = HttpServer::Start(ServerOptions());
    if (!server.ok()) {
      ADD_FAILURE() << server.error().message;
      return;
    }
    server_ = std::move(server).value();
    client_ = NewClient();
  }
  ~HttpFixture() override {
    backend_.Stop();
    server_.reset();
  }

  HttpServer::Options ServerOptions() {
    return {.port = 0,
            .token = std::string(kToken),
            .version = "0.1.0",
            .backend = &backend_,
            .reader = reader_.get(),
            .algorithms = &algorithms_,
            .assets = kAssets};
  }

  std::unique_ptr<httplib::Client> NewClient() const {
    auto client = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client->set_default_headers({{"Authorization", "Bearer " + std::string(kToken)}});
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    return client;
  }

  Json GetJson(const std::string& path, int status = 200) {
    const auto answer = client_->Get(path);
    return Parsed(answer, status);
  }
  Json PostJson(const std::string& path, const std::string& body = "", int status = 200) {
    const auto answer = client_->Post(path, body, "application/yaml");
    return Parsed(answer, status);
  }
  static Json Parsed(const httplib::Result& answer, int status) {
    if (!answer) {
      ADD_FAILURE() << "no answer: " << httplib::to_string(answer.error());
      return {};
    }
    EXPECT_EQ(answer->status, status) << answer->body;
    EXPECT_EQ(answer->get_header_value("Content-Type"),
              status < 400 ? "application/json" : "application/problem+json");
    Json json = Json::parse(answer->body, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << answer->body;
    if (status >= 400) {
      EXPECT_EQ(json.value("status", 0), status);
      EXPECT_NE(json.value("detail", ""), "");
    }
    return json;
  }

  static constexpr std::string_view kPacked{
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00"
      "\x00\x00",
      25};  // "hello"
  static constexpr std::array<Asset, 2> kAssets = {
      Asset{"/index.html", "text/html; charset=utf-8", "e1", "<!doctype html>the page", false},
      Asset{"/assets/app-3f2a.js", "text/javascript", "e2", kPacked, true}};

  ScratchFolder folder_;
  FakeBackend backend_;
  Algorithms algorithms_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

}  // namespace attune::server
