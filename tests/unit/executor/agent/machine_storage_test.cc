#include "base/utf8.h"
#include "tests/unit/executor/agent/machine_fixture.h"

namespace attune::agent {
namespace {

class MachineStorageTest : public MachineTest {
 protected:
  void SetProblem(const std::string& problem) {
    machine_.OnStorageProblem(problem);
    Step();
  }
  void Skip(const std::string& path) {
    machine_.OnUploadSkipped(path);
    Step();
  }
  // The messages that were sent since the last call.
  std::vector<v1::StorageStatus> Statuses() {
    for (int i = 0; i < 3; ++i) FinishWrite();
    std::vector<v1::StorageStatus> statuses;
    for (const auto& message : TakeWritten(v1::FromExecutor::kStorage))
      statuses.push_back(message.storage());
    return statuses;
  }
  std::vector<std::string> Problems() {
    std::vector<std::string> problems;
    for (const v1::StorageStatus& status : Statuses()) problems.push_back(status.problem());
    return problems;
  }
  void Store(int64_t step) {
    v1::CheckpointName name;
    name.set_sweep(1);
    name.set_step(step);
    machine_.OnStored(name, "sha256:ab", "s3://bucket", TimeNow());
    Step();
  }
  void ReceiveUploads(const std::vector<std::string>& paths) {
    v1::ToExecutor message;
    message.mutable_uploads();
    for (const std::string& path : paths) message.mutable_uploads()->add_uploads()->set_path(path);
    Receive(std::move(message));
  }
};

TEST_F(MachineStorageTest, PassesEachListOfUploads) {
  GetWelcomed();
  ReceiveUploads({"/a", "/b"});
  ReceiveUploads({});
  ASSERT_THAT(uploads_, SizeIs(2));
  EXPECT_EQ(uploads_[0].uploads(1).path(), "/b");
  EXPECT_EQ(uploads_[1].uploads_size(), 0);
}

TEST_F(MachineStorageTest, PassesListsWhileItStaysForOthers) {
  GetWelcomed();
  machine_.Leave(seconds(60), TimeNow());
  for (int i = 0; i < 3; ++i) FinishWrite();
  ASSERT_THAT(TakeWritten(v1::FromExecutor::kGoodbye), SizeIs(2));
  ReceiveUploads({"/a"});
  EXPECT_THAT(uploads_, SizeIs(1));
  Store(9);
  FinishWrite();
  EXPECT_THAT(SentSeqs(), ElementsAre(1u));
}

TEST_F(MachineStorageTest, SendsAStoredCheckpointUntilItIsAcknowledged) {
  Store(9);
  GetWelcomed();
  const auto sent = TakeWritten(v1::FromExecutor::kFacts);
  ASSERT_THAT(sent, SizeIs(1));
  ASSERT_EQ(sent[0].facts().facts_size(), 1);
  const v1::Fact& fact = sent[0].facts().facts(0);
  EXPECT_FALSE(fact.has_attempt());
  EXPECT_EQ(fact.time_us(), TimeNow().wall_us);
  EXPECT_EQ(fact.stored().checkpoint().step(), 9);
  EXPECT_EQ(fact.stored().digest(), "sha256:ab");
  EXPECT_EQ(fact.stored().address(), "s3://bucket");
  Break();
  PassTime(Backoff::kMax);
  GetWelcomed();
  EXPECT_THAT(SentSeqs(), ElementsAre(1u));
  FinishWrite();
  Acknowledge(1);
  Break();
  PassTime(Backoff::kMax);
  GetWelcomed();
  EXPECT_THAT(SentSeqs(), IsEmpty());
}

TEST_F(MachineStorageTest, SendsEachChangeOfTheProblem) {
  GetWelcomed();
  SetProblem("");
  EXPECT_THAT(Problems(), IsEmpty());
  SetProblem("the credentials are denied");
  SetProblem("the credentials are denied");
  EXPECT_THAT(Problems(), ElementsAre("the credentials are denied"));
  SetProblem("");
  EXPECT_THAT(Problems(), ElementsAre(""));
}

TEST_F(MachineStorageTest, SendsTheProblemAfterEachWelcomeWhileItLasts) {
  SetProblem("the credentials are denied");
  EXPECT_THAT(Problems(), IsEmpty()) << "before the Welcome";
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre("the credentials are denied"));
  Break();
  PassTime(Backoff::kMax);
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre("the credentials are denied"));
  Break();
  SetProblem("");
  PassTime(Backoff::kMax);
  GetWelcomed();
  EXPECT_THAT(Problems(), IsEmpty()) << "a new connection begins without a problem";
}

TEST_F(MachineStorageTest, SendsAllSkippedUploadsAfterEachNewOne) {
  GetWelcomed();
  Skip("a");
  auto sent = Statuses();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(sent[0].skipped(), ElementsAre("a"));
  Skip("a");
  EXPECT_THAT(Statuses(), IsEmpty());
  SetProblem("the credentials are denied");
  Skip("b");
  sent = Statuses();
  ASSERT_THAT(sent, Not(IsEmpty()));
  EXPECT_EQ(sent.back().problem(), "the credentials are denied");
  EXPECT_THAT(sent.back().skipped(), ElementsAre("a", "b"));
}

TEST_F(MachineStorageTest, SendsTheSkippedUploadsAfterEachWelcome) {
  Skip("a");
  EXPECT_THAT(Statuses(), IsEmpty()) << "before the Welcome";
  for (int i = 0; i < 2; ++i) {
    GetWelcomed();
    const auto sent = Statuses();
    ASSERT_THAT(sent, SizeIs(1)) << i;
    EXPECT_THAT(sent[0].skipped(), ElementsAre("a"));
    Break();
    PassTime(Backoff::kMax);
  }
}

TEST_F(MachineStorageTest, SendsTheNewestSkippedUploads) {
  for (size_t i = 0; i <= Machine::kSkippedUploadsMax; ++i) Skip(std::to_string(i));
  GetWelcomed();
  const auto sent = Statuses();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].skipped_size(), int{Machine::kSkippedUploadsMax});
  EXPECT_EQ(sent[0].skipped(0), "1");
}

TEST_F(MachineStorageTest, AnInvalidUtf8ProblemDoesNotBreakTheConnection) {
  SetProblem("/\xff is denied");
  GetWelcomed();
  EXPECT_THAT(Problems(), ElementsAre(ValidUtf8("/\xff is denied")));
}

}  // namespace
}  // namespace attune::agent
