#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/http/http_server.h"
#include "server/store/json.h"
#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"

namespace attune::server {

// The searchers `random`, which proposes nothing, and `thinker`; the scheduler `asha`, with rungs.
Algorithms FakeAlgorithms();

// A backend with a real brain and a real store. The test defines its executors and its disk.
class FakeBackend final : public Backend {
 public:
  FakeBackend(const std::string& path, const Algorithms& algorithms);
  ~FakeBackend() override;

  void Add(Fact fact);
  void AddAll(std::vector<Fact> facts);
  // Waits until a client has asked for a slow proposal, then computes it.
  void Think();
  void Wait(int64_t us);
  void Stop();

  using Backend::Execute;
  std::vector<Answer> Execute(std::vector<Command> commands, const std::string& actor,
                              const Callback& after) override;
  void QueryState(const std::function<void(const Brain&)>& look) override;
  std::vector<ExecutorStatus> Executors() override;
  Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                           uint32_t limit_bytes) override;
  Result<CheckpointPiece> ReadCheckpoint(const CheckpointId& checkpoint, const std::string& file,
                                         uint64_t offset, uint32_t limit_bytes) override;
  std::string UrlOfCopy(const CheckpointId&, const std::string&,
                        const std::string& address) override {
    return address + "/copy";
  }
  std::string DefaultStore() override { return default_store; }
  Status CheckStore(const std::string& address) override {
    return address == refused_store ? Invalid("storage: not usable") : Status();
  }
  Status Started() override { return starting; }
  Status Ready() override { return refusal; }
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) override;
  // Waits until a stream has nothing more to send.
  void AwaitWaiter();

  std::function<void()> before_executors;  // may block a worker
  std::optional<Command> another;          // a command of another client, executed after the next
  Status refusal;                          // the answer to every request that can be refused
  Status starting;                         // why there is no state yet
  std::string default_store;               // of new sweeps
  std::string refused_store = "s3://refused";
  std::atomic<int> looks = 0;

 private:
  void Add(const Event& event);
  void Append(const std::vector<Event>& events);

  std::unique_ptr<SqliteStore> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Brain brain_;
  int waits_ = 0;
  bool stopped_ = false;
};

inline constexpr std::string_view kToken = "0123456789abcdef";

// A server with the sample log on a free port, and a client that shows the token.
class HttpFixture : public ::testing::Test {
 protected:
  explicit HttpFixture(HttpLimits limits = {});
  ~HttpFixture() override;

  HttpServer::Options ServerOptions();

  std::unique_ptr<httplib::Client> NewClient() const;

  Json GetJson(const std::string& path, int status = 200);
  Json PostJson(const std::string& path, const std::string& body = "", int status = 200,
                const std::string& key = "");
  // Also checks that a problem has a type of the contract.
  static Json Parsed(const httplib::Result& answer, int status);

  static constexpr std::string_view kPacked{
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00"
      "\x00\x00",
      25};  // "hello"
  static constexpr std::array<Asset, 3> kAssets = {
      Asset{"/index.html", "text/html; charset=utf-8", "e1", "<!doctype html>the page", false},
      Asset{"/assets/app-3f2a.js", "text/javascript", "e2", kPacked, true},
      Asset{"/report.html", "text/html; charset=utf-8", "e3",
            "<head><!-- The server puts the title and the answers here. --></head>", false}};

  const HttpLimits limits_;
  ScratchFolder folder_;
  const BrowserSessions sessions_{folder_.path()};
  Algorithms algorithms_;
  FakeBackend backend_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

}  // namespace attune::server
