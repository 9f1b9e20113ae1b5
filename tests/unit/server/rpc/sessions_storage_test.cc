#include "tests/unit/server/rpc/sessions_fixture.h"

// Executors and object stores.
namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

v1::Uploads OneUpload() {
  v1::Uploads uploads;
  uploads.add_uploads()->set_address("s3://bucket");
  return uploads;
}

class SessionsStorageTest : public SessionsTest {
 protected:
  std::unique_ptr<FakeLink> JoinWithRclone() {
    v1::Hello hello = MakeHello("box", "a");
    hello.set_stores(true);
    auto link = server->Connect(hello);
    server->Run();
    return link;
  }
  void Stay(const FakeLink& link) {
    v1::Goodbye goodbye;
    goodbye.set_stays(true);
    server->sessions.OnGoodbye(link.id, goodbye);
    server->Run();
  }
  void TellProblem(const FakeLink& link, const std::string& problem) {
    v1::StorageStatus status;
    status.set_problem(problem);
    server->sessions.OnStorage(link.id, status);
    server->Run();
  }
};

TEST_F(SessionsStorageTest, AnExecutorGetsItsListNowAndAfterItReconnects) {
  const auto link = JoinWithRclone();
  ASSERT_THAT(link->MessagesOf(v1::ToExecutor::kUploads), SizeIs(1));
  EXPECT_EQ(link->MessagesOf(v1::ToExecutor::kUploads)[0].uploads().uploads_size(), 0)
      << "it replaces the list of an earlier server";
  server->sessions.SetUploads("box", OneUpload());
  EXPECT_THAT(link->MessagesOf(v1::ToExecutor::kUploads), SizeIs(2));
  server->sessions.OnClosed(link->id);
  const auto again = JoinWithRclone();
  const auto lists = again->MessagesOf(v1::ToExecutor::kUploads);
  ASSERT_THAT(lists, SizeIs(1));
  EXPECT_EQ(lists[0].uploads().uploads(0).address(), "s3://bucket");
}

TEST_F(SessionsStorageTest, KnowsWhoCanUploadAndWhyNot) {
  const auto link = JoinWithRclone();
  const auto other = server->Join("other");
  TellProblem(*link, "the credentials have expired");
  EXPECT_TRUE(server->sessions.StorageUseOf("box")->stores);
  EXPECT_EQ(server->sessions.StorageUseOf("box")->problem, "the credentials have expired");
  EXPECT_FALSE(server->sessions.StorageUseOf("other")->stores);
  EXPECT_FALSE(server->sessions.StorageUseOf("absent"));
}

TEST_F(SessionsStorageTest, RemembersSkippedUploadsOfAConnection) {
  const auto link = JoinWithRclone();
  v1::StorageStatus status;
  status.add_skipped("checkpoints/a");
  server->sessions.OnStorage(link->id, status);
  TellProblem(*link, "");
  EXPECT_THAT(server->sessions.StorageUseOf("box")->skipped, ElementsAre("checkpoints/a"));
  server->sessions.OnClosed(link->id);
  const auto again = JoinWithRclone();
  EXPECT_TRUE(server->sessions.StorageUseOf("box")->skipped.empty());
}

TEST_F(SessionsStorageTest, ALeavingExecutorIsReleasedAfterItsUploads) {
  const auto link = JoinWithRclone();
  server->is_uploading = true;
  Stay(*link);
  EXPECT_FALSE(link->released());
  server->is_uploading = false;
  server->sessions.CheckReleases();
  server->Run();
  EXPECT_TRUE(link->released());
}

TEST_F(SessionsStorageTest, ALeavingExecutorDoesNotWaitForPausedUploads) {
  const auto link = JoinWithRclone();
  server->is_uploading = true;
  Stay(*link);
  TellProblem(*link, "the bucket does not exist");
  EXPECT_TRUE(link->released());
}

}  // namespace
}  // namespace attune::server
