#include "executor/transfer/store_pieces.h"

#include <gmock/gmock.h>

#include <future>

#include "executor/transfer/piece_copies.h"
#include "tests/unit/executor/harness.h"
#include "tests/unit/executor/transfer/fake_rclone.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kPath[] = "checkpoints/s1/4/1-3-0123";

// The source through the server. It has the files of a folder, or no files.
class ServerFolder final : public PieceSource {
 public:
  Answer Read(gang::RemoteFiles&, const std::string& file, uint64_t offset, std::string) override {
    reads.push_back(file);
    if (folder.empty())
      return {.piece = UnreadableError("no executor has it"), .is_final = is_final};
    return {.piece = checkpoints::ReadPiece(folder, file, offset, checkpoints::kPieceBytesMax)};
  }
  void Close() override {}
  void Cancel() override {}

  std::vector<std::string> reads;
  fs::path folder;
  bool is_final = false;
};

class StorePiecesTest : public testing::Test {
 protected:
  StorePiecesTest() { Files().stored.reset(); }

  gang::RemoteFiles& Files() { return files_; }
  fs::path Copy() const { return rclone_.Store() / kPath; }
  PieceSource::Answer Read(const std::string& file, uint64_t offset = 0) {
    return pieces_.Read(files_, file, offset, {});
  }
  // Stores a copy. Returns its digest.
  std::string Store() {
    files_.stored = gang::StoredCopy{rclone_.Address(), kPath, {{"AWS_ACCESS_KEY_ID", "key"}}};
    return WriteCheckpoint(Copy(), "model");
  }
  static object_storage::StoreOptions Options() {
    object_storage::StoreOptions options;
    options.tries = 1;
    return options;
  }

  FakeRclone rclone_;
  ServerFolder server_;
  gang::TempDir there_;  // files that the server has
  gang::RemoteFiles files_{.name = {.sweep = 1, .trial = 4, .attempt = 1, .step = 3},
                           .folder = "step-3-attempt-1",
                           .servers = {}};
  StorePieces pieces_{server_, rclone_.Environment(), Options()};
};

TEST_F(StorePiecesTest, ReadsTheCopy) {
  rclone_.SetKey("key");
  Store();
  const auto answer = Read("model");
  ASSERT_TRUE(answer.piece.ok()) << answer.piece.error().message;
  EXPECT_EQ(answer.piece->data, "model");
  EXPECT_EQ(answer.piece->file_bytes, 5u);
  EXPECT_EQ(answer.directly_from, rclone_.Address());
  EXPECT_EQ(Read("state/rng", 1).piece->data, "ng");
  EXPECT_THAT(rclone_.Calls("lsjson"), SizeIs(1)) << "files of a checkpoint need one list";
  EXPECT_THAT(server_.reads, IsEmpty());
}

TEST_F(StorePiecesTest, AsksTheServerIfThereIsNoCopy) {
  WriteCheckpoint(server_.folder = there_.path(), "model");
  const auto answer = Read("model");
  EXPECT_EQ(answer.piece->data, "model");
  EXPECT_EQ(answer.directly_from, "");
  EXPECT_THAT(rclone_.Calls(), IsEmpty());
}

TEST_F(StorePiecesTest, AsksTheServerAfterAnErrorAndNotTheStoreAgain) {
  WriteCheckpoint(server_.folder = there_.path(), "model");
  Store();
  rclone_.Fail("lsjson", "connection reset");
  EXPECT_EQ(Read("model").piece->data, "model");
  EXPECT_EQ(Read("state/rng").piece->data, "rng");
  EXPECT_THAT(rclone_.Calls(), SizeIs(1));
  EXPECT_THAT(server_.reads, ElementsAre("model", "state/rng"));
}

TEST_F(StorePiecesTest, ContinuesThroughTheServerIfAFileIsMissing) {
  WriteCheckpoint(server_.folder = there_.path(), "model");
  Store();
  EXPECT_EQ(Read("model").directly_from, rclone_.Address());
  fs::remove(Copy() / "state/rng");
  EXPECT_EQ(Read("state/rng").piece->data, "rng");
  EXPECT_THAT(server_.reads, ElementsAre("state/rng"));
}

TEST_F(StorePiecesTest, TheErrorSaysWhyNeitherSourceCanBeRead) {
  Store();
  rclone_.SetKey("other");
  server_.is_final = true;
  const auto answer = Read("model");
  EXPECT_THAT(answer.piece.error().message,
              AllOf(HasSubstr("no executor has it"), HasSubstr(rclone_.Address()),
                    HasSubstr("AccessDenied")));
  EXPECT_FALSE(answer.is_final) << "the copy may be readable later";
}

TEST_F(StorePiecesTest, TheErrorIsFinalIfTheCopyIsGone) {
  Store();
  fs::remove_all(Copy());
  server_.is_final = true;
  EXPECT_TRUE(Read("model").is_final);
}

TEST_F(StorePiecesTest, WithoutRcloneTheServerIsAsked) {
  WriteCheckpoint(server_.folder = there_.path(), "model");
  Store();
  StorePieces pieces(server_, {"ATTUNE_RCLONE=/nonexistent/rclone"}, Options());
  EXPECT_EQ(pieces.Read(files_, "model", 0, {}).piece->data, "model");
  server_.folder.clear();
  server_.is_final = true;
  const auto answer = pieces.Read(files_, "model", 0, {});
  EXPECT_THAT(answer.piece.error().message, HasSubstr("install rclone"));
  EXPECT_FALSE(answer.is_final);
}

TEST_F(StorePiecesTest, CloseForgetsTheErrorOfACopy) {
  Store();
  rclone_.Fail("lsjson", "connection reset");
  Read("model");
  pieces_.Close();
  EXPECT_EQ(Read("model").piece.error().message, "no executor has it");
}

TEST_F(StorePiecesTest, CancelEndsAReadThatWaits) {
  Store();
  rclone_.Hold("cat");
  auto answer = std::async(std::launch::async, [&] { return Read("model"); });
  ASSERT_TRUE(rclone_.AwaitCall("cat"));
  pieces_.Cancel();
  EXPECT_EQ(answer.get().piece.error().message, "cancelled");
  EXPECT_THAT(server_.reads, IsEmpty());
  rclone_.StopHolding("cat");
  pieces_.Close();
  EXPECT_EQ(Read("model").piece->data, "model");
}

// The source directly from another executor. It sends files of the copy in the store, except the
// model.
class ExecutorFolder final : public PieceSource {
 public:
  ExecutorFolder(PieceSource& fallback, const FakeRclone& rclone)
      : fallback_(fallback), folder_(rclone.Store() / kPath) {}

  Answer Read(gang::RemoteFiles& files, const std::string& file, uint64_t offset,
              std::string memory) override {
    if (files.servers.empty()) return fallback_.Read(files, file, offset, std::move(memory));
    if (file != "model")
      return {.piece = checkpoints::ReadPiece(folder_, file, offset, checkpoints::kPieceBytesMax),
              .directly_from = "executor a"};
    const checkpoints::Piece piece{.data = model.substr(offset), .file_bytes = 5};
    if (offset + piece.data.size() < piece.file_bytes) files.servers.clear();
    return {.piece = piece, .directly_from = "executor a"};
  }
  void Close() override { fallback_.Close(); }
  void Cancel() override { fallback_.Cancel(); }

  std::string model;  // a part of five bytes; then the executor leaves

 private:
  PieceSource& fallback_;
  const fs::path folder_;
};

class FetchedCopyTest : public StorePiecesTest {
 protected:
  Transfer Fetch(const std::string& digest) {
    return WantedFromPieces(kCheckpoints, source_, files_, digest, std::chrono::milliseconds(1),
                            [this] { ++damages_; })
        .download(here_.path() / "copy", {});
  }
  // Makes another executor the first source. It sends `model` with this text.
  void StartExecutor(const std::string& model) {
    source_.model = model;
    files_.servers = {{.executor = "a"}};
  }

  gang::TempDir here_;
  ExecutorFolder source_{pieces_, rclone_};
  int damages_ = 0;  // reports of a damaged copy in the store
};

TEST_F(FetchedCopyTest, TheLogNamesTheStore) {
  const Transfer done = Fetch(Store());
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_THAT(done.route, HasSubstr("from " + rclone_.Address()));
  EXPECT_EQ(gang::ReadFile(here_.path() / "copy/model"), "model");
  EXPECT_EQ(damages_, 0);
}

TEST_F(FetchedCopyTest, ADamagedCopyIsReplacedByTheFilesOfTheServer) {
  const std::string digest = Store();
  WriteCheckpoint(server_.folder = there_.path(), "model");
  gang::WriteFile(Copy() / "model", "MODEL");
  const Transfer done = Fetch(digest);
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(done.route, "");
  EXPECT_EQ(gang::ReadFile(here_.path() / "copy/model"), "model");
  EXPECT_EQ(damages_, 1);
}

TEST_F(FetchedCopyTest, ADamagedCopyWithoutAServerIsNamed) {
  const std::string digest = Store();
  gang::WriteFile(Copy() / "model", "MODEL");
  const Transfer done = Fetch(digest);
  ASSERT_FALSE(done.status.ok());
  EXPECT_THAT(done.status.error().message,
              AllOf(HasSubstr("no executor has it"), HasSubstr("model")));
  EXPECT_FALSE(done.is_final);
  EXPECT_EQ(damages_, 1);
}

TEST_F(FetchedCopyTest, ADamagedCopyThatTheServerSendsTooIsNotAFinalError) {
  const std::string digest = Store();
  gang::WriteFile(Copy() / "model", "MODEL");
  server_.folder = Copy();
  const Transfer done = Fetch(digest);
  EXPECT_TRUE(HasFailed(done.status, ErrorCode::kCorrupt));
  EXPECT_FALSE(done.is_final);
  EXPECT_EQ(damages_, 1);
  files_.stored.reset();
  EXPECT_TRUE(Fetch(digest).is_final) << "without a copy";
  EXPECT_EQ(damages_, 1);
}

TEST_F(FetchedCopyTest, ADamagedFileFromTheServerAfterAnErrorOfTheStoreIsNotAFinalError) {
  const std::string digest = Store();
  gang::WriteFile(Copy() / "model", "MODEL");
  server_.folder = Copy();
  rclone_.Fail("lsjson", "connection reset");
  const Transfer done = Fetch(digest);
  EXPECT_TRUE(HasFailed(done.status, ErrorCode::kCorrupt));
  EXPECT_FALSE(done.is_final);
  EXPECT_EQ(damages_, 1);
}

TEST_F(FetchedCopyTest, AnErrorAfterADamagedCopyIsNotFinal) {
  const std::string digest = Store();
  gang::WriteFile(Copy() / "model", "MODEL");
  server_.is_final = true;
  EXPECT_FALSE(Fetch(digest).is_final);
  EXPECT_EQ(damages_, 1);
}

TEST_F(FetchedCopyTest, DamageFromAnotherExecutorDoesNotCountAsThatOfTheCopy) {
  const std::string digest = Store();
  for (const std::string model : {"MODEL", "MO"}) {
    SCOPED_TRACE(model);
    StartExecutor(model);
    const Transfer done = Fetch(digest);
    ASSERT_TRUE(done.status.ok()) << done.status.error().message;
    EXPECT_THAT(done.route, HasSubstr("from " + rclone_.Address()));
    EXPECT_EQ(damages_, 0);
    fs::remove_all(here_.path() / "copy");
  }
}

TEST_F(FetchedCopyTest, DamageOfTheCopyIsFoundAfterThatOfAnotherExecutor) {
  const std::string digest = Store();
  gang::WriteFile(Copy() / "model", "MODEL");
  WriteCheckpoint(server_.folder = there_.path(), "model");
  StartExecutor("MO");
  const Transfer done = Fetch(digest);
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(damages_, 1);
}

}  // namespace
}  // namespace attune::agent
