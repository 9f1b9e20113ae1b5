#include "server/http/answers/event_stream.h"

#include <future>
#include <set>

#include "server/http/routes/api.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Received {
  std::string id;
  std::string name;
  Json data;
};

class EventStreamTest : public HttpFixture {
 protected:
  static constexpr uint64_t kLast = 38;  // the last event of the sample log

  // Reads until `enough` is true for the text so far.
  std::string ReadUntil(const std::string& query, const httplib::Headers& headers,
                        const std::function<bool(const std::string&)>& enough) {
    std::string text;
    const auto client = NewClient();
    client->Get("/api/v1/events" + query, headers, [&](const char* data, size_t size) {
      text.append(data, size);
      return !enough(text);
    });
    return text;
  }

  // All events up to the one with this seq.
  std::vector<Received> EventsUntil(uint64_t seq, const std::string& query,
                                    const httplib::Headers& headers = {}) {
    const std::string last = "id: " + std::to_string(seq) + "\n";
    const auto end = [&](const std::string& text) {
      const size_t at = text.find(last);
      return at == std::string::npos ? at : text.find("\n\n", at);
    };
    const std::string text = ReadUntil(query, headers, [&](const std::string& so_far) {
      return end(so_far) != std::string::npos;
    });
    return Parse(text.substr(0, end(text) + 2));
  }

  static std::vector<Received> Parse(const std::string& text) {
    std::vector<Received> events;
    Received event;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("data: ")) event.data = Json::parse(line.substr(6));
      if (line.empty() && !event.name.empty()) events.push_back(std::exchange(event, {}));
    }
    return events;
  }
};

TEST_F(EventStreamTest, TranslatesTheWholeLogAsDocumented) {
  const auto events = EventsUntil(kLast, "?after=0");
  std::set<std::string> names;
  for (const Received& event : events) {
    names.insert(event.name);
    EXPECT_TRUE(event.data.contains("seq") && event.data.contains("time"));
    EXPECT_EQ(event.data.contains("sweep"), event.name != "executor_changed");
    EXPECT_EQ(event.data.contains("trial"), event.name.starts_with("trial") ||
                                                event.name.starts_with("attempt") ||
                                                event.name.starts_with("checkpoint"));
  }
  EXPECT_THAT(names, ElementsAre("attempt_changed", "checkpoint_saved", "executor_changed",
                                 "sweep_changed", "sweep_created", "trial_changed", "trial_created",
                                 "trial_decided", "trial_reported"));
  EXPECT_EQ(events[0].data.dump(),
            R"({"seq":1,"time":"2026-11-21T10:00:01.000000Z","actor":"attune","executor":"box",)"
            R"("state":"online","cpus":2,"gpus":1,"memory_bytes":25165824000})");
}

TEST_F(EventStreamTest, AnAssignmentIsTwoEventsAndOnlyTheLastHasTheId) {
  const auto events = EventsUntil(13, "?after=12");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].id, "");
  EXPECT_EQ(events[0].name, "attempt_changed");
  EXPECT_EQ(events[0].data.at("state"), "assigned");
  EXPECT_EQ(events[0].data.at("executor"), "box");
  EXPECT_EQ(events[0].data.at("resumed_from"), 3);
  EXPECT_EQ(events[1].id, "13");
  EXPECT_EQ(events[1].name, "trial_changed");
  EXPECT_EQ(events[1].data.at("state"), "running");
}

TEST_F(EventStreamTest, AnEndedAttemptSaysWhereItRanAndWhyItFailed) {
  const auto events = EventsUntil(11, "?after=10");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].data.at("state"), "ended");
  EXPECT_EQ(events[0].data.at("outcome"), "failed");
  EXPECT_EQ(events[0].data.at("executor"), "box");
  EXPECT_EQ(events[0].data.at("failure"), "rank 1 was killed by signal 9 (SIGKILL)");
}

TEST_F(EventStreamTest, APauseIsAVerdictAndAState) {
  const auto events = EventsUntil(28, "?after=27");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].data.at("verdict"), "pause");
  EXPECT_TRUE(events[0].data.at("cutoff").is_null());
  EXPECT_EQ(events[1].data.at("state"), "paused");
  EXPECT_EQ(events[1].data.at("reason"), "paused at rung 1");
}

// The stream event of a fact, without the members that every event has.
class Translation : public HttpFixture {
 protected:
  std::string TranslatedText(Fact fact) {
    const auto events = Translate({EventSeq(1), Time{kSampleStart}, std::move(fact)}, *reader_);
    if (events.empty()) return "";
    Json data = Json::parse(events.front().data);
    for (const char* common : {"seq", "sweep", "trial", "time", "actor"}) data.erase(common);
    return events.front().name + " " + data.dump();
  }

  const SweepId sweep_{1};
  const TrialId trial_{SweepId(1), TrialNumber(2)};
};

TEST_F(Translation, TellsASweepsStateAndEnd) {
  EXPECT_EQ(TranslatedText(SweepPaused{sweep_, "paused on request"}),
            R"(sweep_changed {"state":"paused","reason":"paused on request","end_state":""})");
  EXPECT_EQ(TranslatedText(SweepResumed{sweep_}),
            R"(sweep_changed {"state":"running","reason":"","end_state":""})");
  EXPECT_EQ(TranslatedText(SweepReopened{sweep_, "extended on request"}),
            R"(sweep_changed {"state":"running","reason":"extended on request","end_state":""})");
  EXPECT_EQ(TranslatedText(SweepStopping{sweep_, SweepState::kKilled, "on request"}),
            R"(sweep_changed {"state":null,"reason":"on request","end_state":"killed"})");
}

TEST_F(Translation, AnEditTellsWhatChangedAndWhoDidIt) {
  SweepSpec spec = SampleSpec();
  spec.priority = 3;
  const Event event{EventSeq(1), Time{kSampleStart}, SweepEdited{sweep_, spec, {"priority 3"}},
                    "ada"};
  const auto events = Translate(event, *reader_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].name, "sweep_edited");
  const Json data = Json::parse(events[0].data);
  EXPECT_EQ(data.at("actor"), "ada");
  EXPECT_EQ(data.at("priority"), 3);
  EXPECT_EQ(data.at("changes"), Json({"priority 3"}));
}

TEST_F(Translation, ATrialThatWaitsAfterAFailureTellsUntilWhen) {
  EXPECT_EQ(TranslatedText(TrialRequeued{trial_, "restart 1 of 3", Time{kSampleStart + 1'000'000}}),
            R"(trial_changed {"state":"pending","reason":"restart 1 of 3",)"
            R"("not_before":"2026-11-21T10:00:01.000000Z"})");
  EXPECT_EQ(TranslatedText(TrialRequeued{trial_, "its sweep was resumed", Time{kSampleStart}}),
            R"(trial_changed {"state":"pending","reason":"its sweep was resumed"})");
  EXPECT_EQ(
      TranslatedText(TrialReopened{.record = {.id = trial_}, .reason = "tried again on request"}),
      R"(trial_changed {"state":"pending","reason":"tried again on request"})");
}

TEST_F(Translation, TellsTheVerdictOfAYieldingTrial) {
  EXPECT_EQ(TranslatedText(TrialYielding{trial_, Verdict::Pause({.text = "its sweep was paused"})}),
            R"(trial_yielding {"verdict":"pause","reason":"its sweep was paused"})");
}

TEST_F(Translation, AnExploitTellsDonorAndConfiguration) {
  const std::string text = TranslatedText(
      TrialDecided{.attempt = {trial_, 1},
                   .step = Step(3),
                   .verdict = Verdict::Exploit({{SweepId(1), TrialNumber(7)}, 1, Step(3)},
                                               {{"lr", 0.1}}, {.text = "clones trial 7"})});
  EXPECT_THAT(text, HasSubstr(R"("donor":7,"donor_step":3,"config":{"lr":0.1})"));
}

TEST_F(Translation, APromotionOfACloneTellsItsDonor) {
  EXPECT_EQ(
      TranslatedText(
          TrialPromoted{.trial = trial_,
                        .reason = {.text = "clones trial 7"},
                        .config = Config{{"lr", 0.1}},
                        .donor = CheckpointId{{SweepId(1), TrialNumber(7)}, 1, Step(3)}}),
      R"(trial_changed {"state":"pending","reason":"clones trial 7","donor":7,"donor_step":3,)"
      R"("config":{"lr":0.1}})");
}

TEST_F(Translation, AnAnnotationHasOnlyWhatChanged) {
  EXPECT_EQ(TranslatedText(TrialAnnotated{trial_, {.note = "a\nb"}}),
            R"(trial_annotated {"note":"a\nb"})");
  EXPECT_EQ(TranslatedText(SweepAnnotated{SweepId(1), {.tags = {{"best", "lr"}}}}),
            R"(sweep_annotated {"tags":["best","lr"]})");
}

TEST_F(Translation, TellsChangesOfCheckpoints) {
  const CheckpointId checkpoint{trial_, 1, Step(3)};
  EXPECT_EQ(TranslatedText(CheckpointPinned{checkpoint, true}),
            R"(checkpoint_pinned {"attempt":1,"step":3,"pinned":true})");
  EXPECT_EQ(TranslatedText(CheckpointDropped{checkpoint, "box", "/data/3", "not among the newest"}),
            R"(checkpoint_dropped {"attempt":1,"step":3,"reason":"not among the newest"})");
  EXPECT_EQ(TranslatedText(CheckpointRemoved{checkpoint}), "");
}

TEST_F(EventStreamTest, LastEventIdOverridesTheQuery) {
  const auto events = EventsUntil(kLast, "?after=0", {{"Last-Event-ID", "36"}});
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().data.at("seq"), 38);  // the stream does not show event 37
}

TEST_F(EventStreamTest, BeginsWithTheNextEventByDefault) {
  auto text = std::async(std::launch::async, [&] {
    return ReadUntil("", {}, [](const std::string& so_far) {
      return so_far.find("\n\n", so_far.find("event: ")) != std::string::npos &&
             so_far.find("event: ") != std::string::npos;
    });
  });
  backend_.AwaitWaiter();
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, "stopped on request"});
  const std::string received = text.get();
  EXPECT_THAT(received, HasSubstr("retry: 2000\n\n"));
  const auto events = Parse(received);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].id, "39");
  EXPECT_EQ(events[0].name, "sweep_changed");
  EXPECT_EQ(events[0].data.at("state"), "stopped");
}

TEST_F(EventStreamTest, ASweepsStreamHasItsOwnEventsAndTheExecutors) {
  backend_.Add(SweepCreated{.sweep = SweepId(2), .spec = SampleSpec()});
  backend_.Add(ExecutorLost{"box", Incarnation(1), "gone"});
  backend_.Add(SweepEnded{SweepId(2), SweepState::kKilled, ""});
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, ""});
  const auto events = EventsUntil(42, "?sweep=s1&after=38");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "executor_changed");
  EXPECT_EQ(events[1].data.at("sweep"), "s1");
}

TEST_F(EventStreamTest, HeadersKeepProxiesFromBufferingIt) {
  httplib::Headers headers;
  const auto client = NewClient();
  client->Get(
      "/api/v1/events", {},
      [&](const httplib::Response& response) {
        headers = response.headers;
        return true;
      },
      [](const char*, size_t) { return false; });
  EXPECT_THAT(headers, Contains(std::make_pair("Content-Type", "text/event-stream")));
  EXPECT_THAT(headers, Contains(std::make_pair("Cache-Control", "no-store")));
  EXPECT_THAT(headers, Contains(std::make_pair("X-Accel-Buffering", "no")));
}

TEST_F(EventStreamTest, PositionsAreNumbers) {
  GetJson("/api/v1/events?after=x", 400);
  GetJson("/api/v1/events?after=-1", 400);
  GetJson("/api/v1/events?sweep=1", 400);
}

TEST_F(EventStreamTest, AStopEndsTheStreams) {
  auto text = std::async(std::launch::async, [&] {
    return ReadUntil("", {}, [](const std::string&) { return false; });
  });
  backend_.AwaitWaiter();
  backend_.Stop();
  server_->Stop();
  EXPECT_EQ(text.get(), "retry: 2000\n\n");
}

}  // namespace
}  // namespace attune::server
