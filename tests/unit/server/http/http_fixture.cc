#include "tests/unit/server/http/http_fixture.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "rest/contract.h"

namespace attune::server {
namespace {

class NoSearcher final : public Searcher {
 public:
  Suggestion Suggest(ProposalNumber) const override { return Exhausted{}; }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

class ProposalRunner final : public Searcher {
 public:
  Suggestion Suggest(ProposalNumber) const override {
    return Proposed{{{"lr", 0.05}}, {.rule = "toy", .text = "always the same"}};
  }
  bool NeedsThread() const override { return true; }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

class ThreeRungs final : public Scheduler {
 public:
  Verdict Judge(const TrialView&, const Report& report) const override {
    return Verdict::Continue("goes on at rung " + std::to_string(report.step.value));
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    for (const Step rung : Rungs()) {
      if (rung > after) return rung;
    }
    return std::nullopt;
  }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
  std::vector<Step> Rungs() const override { return {Step(1), Step(3), Step(9)}; }
};

}  // namespace

Algorithms FakeAlgorithms() {
  Algorithms algorithms;
  algorithms.Add(
      Entry<Searcher>{"random", "", {}, [](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
                        return std::unique_ptr<Searcher>(std::make_unique<NoSearcher>());
                      }});
  algorithms.Add(
      Entry<Searcher>{"thinker", "", {}, [](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
                        return std::unique_ptr<Searcher>(std::make_unique<ProposalRunner>());
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

// ---- The backend ---------------------------------------------------------------------------

FakeBackend::FakeBackend(const std::string& path, const Algorithms& algorithms)
    : store_(SqliteStore::Open(path).value()),
      brain_(algorithms, [](const std::string&) { return true; }) {
  const SampleLog log;
  for (const Event& event : log.events()) Add(event);
}

FakeBackend::~FakeBackend() = default;

void FakeBackend::Add(Fact fact) {
  const State& state = brain_.state();
  Add(Event{EventSeq(state.last_seq.value + 1), Time{state.last_time.us + 1'000'000},
            std::move(fact)});
}

void FakeBackend::AddAll(std::vector<Fact> facts) {
  const std::lock_guard lock(mutex_);
  std::vector<Event> events;
  for (Fact& fact : facts) {
    const State& state = brain_.state();
    events.push_back({EventSeq(state.last_seq.value + 1), Time{state.last_time.us + 1'000'000},
                      std::move(fact)});
    brain_.Replay(events.back());
  }
  Append(events);
}

void FakeBackend::Think() {
  std::vector<Thought> thoughts;
  {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(10),
                                  [&] { return !brain_.Thoughts().empty(); }));
    thoughts = brain_.Thoughts();
  }
  for (const Thought& thought : thoughts) EXPECT_TRUE(Execute(thought.Think(), "attune").ok());
}

void FakeBackend::Wait(int64_t us) {
  const std::lock_guard lock(mutex_);
  Append(brain_.Advance(Time{brain_.state().last_time.us + us}));
}

void FakeBackend::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::vector<Backend::Answer> FakeBackend::Execute(std::vector<Command> commands,
                                                  const std::string& actor, const Callback& after) {
  const std::lock_guard lock(mutex_);
  std::vector<Answer> answers;
  for (const Command& command : commands) {
    const bool comes = answers.empty() || (answers.back().ok() && !answers.back()->empty());
    if (!answers.empty() && comes) Append(brain_.Advance(brain_.state().last_time));
    answers.push_back(!refusal.ok() ? Answer(refusal.error())
                      : comes       ? brain_.Execute(command, brain_.state().last_time, actor)
                                    : Answer(std::vector<Event>()));
    if (answers.back().ok()) Append(*answers.back());
  }
  if (another)
    Append(brain_.Execute(*std::exchange(another, {}), brain_.state().last_time).value());
  if (refusal.ok()) Append(brain_.Advance(brain_.state().last_time));
  for (const Answer& answer : answers) {
    if (answer.ok() && after) after(*answer, brain_);
  }
  return answers;
}

void FakeBackend::QueryState(const std::function<void(const Brain&)>& look) {
  const std::lock_guard lock(mutex_);
  ++looks;
  look(brain_);
}

std::vector<Backend::ExecutorStatus> FakeBackend::Executors() {
  if (before_executors) before_executors();
  std::vector<ExecutorStatus> all = {{.name = "box",
                                      .state = "online",
                                      .address = "127.0.0.1",
                                      .total = {.cpus = 2, .memory_bytes = 25'165'824'000},
                                      .free = {.cpus = 1}}};
  const std::lock_guard lock(mutex_);
  for (const auto& [name, executor] : brain_.state().executors) {
    if (name != "box") all.push_back(StatusOf(brain_.state(), executor, 1.5));
  }
  return all;
}

Result<Backend::LogSlice> FakeBackend::ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                                               uint32_t limit_bytes) {
  if (!refusal.ok()) return refusal.error();
  return LogSlice{.data = ToString(attempt) + " " + std::to_string(rank) + " " +
                          std::to_string(offset) + " " + std::to_string(limit_bytes) + "\n",
                  .offset = 17,
                  .file_bytes = 40,
                  .gap_begin = 3,
                  .gap_end = 9};
}

Result<Backend::CheckpointPiece> FakeBackend::ReadCheckpoint(const CheckpointId& checkpoint,
                                                             const std::string& file,
                                                             uint64_t offset,
                                                             uint32_t limit_bytes) {
  if (!refusal.ok()) return refusal.error();
  return CheckpointPiece{.data = ToString(checkpoint) + " " + file + " " + std::to_string(offset) +
                                 " " + std::to_string(limit_bytes),
                         .file_bytes = 5'000'000};
}

EventSeq FakeBackend::WaitForEvents(EventSeq seq, int timeout_ms) {
  std::unique_lock lock(mutex_);
  ++waits_;
  changed_.notify_all();
  changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                    [&] { return stopped_ || brain_.state().last_seq > seq; });
  return brain_.state().last_seq;
}

void FakeBackend::AwaitWaiter() {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(10),
                                [&, before = waits_] { return waits_ > before; }));
}

void FakeBackend::Add(const Event& event) {
  const std::lock_guard lock(mutex_);
  brain_.Replay(event);
  Append({event});
}

void FakeBackend::Append(const std::vector<Event>& events) {
  ASSERT_TRUE(store_->Append(events).ok());
  changed_.notify_all();
}

// ---- The fixture ---------------------------------------------------------------------------

HttpFixture::HttpFixture(HttpLimits limits)
    : limits_(limits),
      algorithms_(FakeAlgorithms()),
      backend_(folder_ / "attune.db", algorithms_),
      reader_(Reader::Open(folder_ / "attune.db").value()) {
  auto server = HttpServer::Start(ServerOptions());
  if (!server.ok()) {
    ADD_FAILURE() << server.error().message;
    return;
  }
  server_ = std::move(server).value();
  client_ = NewClient();
}

HttpFixture::~HttpFixture() {
  backend_.Stop();
  server_.reset();
}

HttpServer::Options HttpFixture::ServerOptions() {
  return {.port = 0,
          .token = std::string(kToken),
          .version = "0.1.0",
          .limits = limits_,
          .backend = &backend_,
          .reader = reader_.get(),
          .algorithms = &algorithms_,
          .sessions = &sessions_,
          .assets = kAssets};
}

std::unique_ptr<httplib::Client> HttpFixture::NewClient() const {
  auto client = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
  client->set_default_headers({{"Authorization", "Bearer " + std::string(kToken)}});
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  return client;
}

Json HttpFixture::GetJson(const std::string& path, int status) {
  const auto answer = client_->Get(path);
  return Parsed(answer, status);
}

Json HttpFixture::PostJson(const std::string& path, const std::string& body, int status,
                           const std::string& key) {
  httplib::Headers headers;
  if (!key.empty()) headers.emplace("Idempotency-Key", key);
  const auto answer = client_->Post(path, headers, body, "application/yaml");
  return Parsed(answer, status);
}

Json HttpFixture::Parsed(const httplib::Result& answer, int status) {
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
    const std::string type = json.value("type", "");
    const auto row = std::ranges::find(rest::kProblems, type, &rest::ProblemRow::type);
    EXPECT_TRUE(row != std::end(rest::kProblems) && row->status == status) << type;
    EXPECT_NE(json.value("detail", ""), "");
  }
  return json;
}

}  // namespace attune::server
