#include <gmock/gmock.h>
#include <sys/socket.h>

#include <future>

#include "checkpoints/manifest.h"
#include "code/tree.h"
#include "executor/transfer/direct_pieces.h"
#include "executor/transfer/direct_sender.h"
#include "system/sha256.h"
#include "system/unique_fd.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kLoopback[] = "127.0.0.1";
constexpr uint64_t kModelBytes = 2 * checkpoints::kPieceBytesMax + 1'000;  // three pieces

constexpr uint64_t kMoreThanSocketsHold = 1 << 30;

// The source through the server, which has every file of the checkpoint's folder.
class ByServer final : public PieceSource {
 public:
  explicit ByServer(fs::path folder) : folder_(std::move(folder)) {}

  Answer Read(gang::RemoteFiles&, const std::string& file, uint64_t offset, std::string) override {
    reads.push_back(file + "@" + std::to_string(offset));
    return {.piece = checkpoints::ReadPiece(folder_, file, offset, checkpoints::kPieceBytesMax)};
  }
  void Close() override {}
  void Cancel() override {}

  std::vector<std::string> reads;

 private:
  const fs::path folder_;
};

class DirectTest : public testing::Test {
 protected:
  DirectTest() {
    fs::create_directories(Folder() / "state");
    gang::WriteFile(Folder() / "model.bin", Model());
    gang::WriteFile(Folder() / "state" / "total.json", "{}");
    gang::WriteFile(Folder() / "empty", "");
    gang::WriteFile(Folder().parent_path() / "secret", "secret");
    Start();
  }

  void Start(const DirectTimeouts& timeouts = {}) {
    sender_ = std::make_unique<DirectSender>(gang::Folders(data_.path()), data_.path() / "code",
                                             kLoopback, timeouts);
    ASSERT_NE(sender_->port(), 0);
  }

  static std::string Model() {
    std::string model(kModelBytes, '\0');
    for (size_t i = 0; i < model.size(); ++i) model[i] = static_cast<char>(i / 1'000);
    return model;
  }
  fs::path Folder() const {
    return data_.path() / "sweeps/s1/trials/4/checkpoints/step-3-attempt-1";
  }
  gang::PieceServer Server() const {
    return {.executor = "a", .address = kLoopback, .port = sender_->port(), .key = sender_->key()};
  }
  gang::RemoteFiles Checkpoint(std::vector<gang::PieceServer> servers) const {
    return {.name = {.sweep = 1, .trial = 4, .attempt = 1, .step = 3},
            .folder = "step-3-attempt-1",
            .servers = std::move(servers)};
  }
  gang::RemoteFiles Checkpoint() const { return Checkpoint({Server()}); }

  // A connection that has not authenticated.
  UniqueFd Dial() const {
    UniqueFd socket = NewSocket();
    SetTimeouts(socket.get(), gang::kDeadline, gang::kDeadline);
    EXPECT_TRUE(Connect(socket.get(), kLoopback, sender_->port()));
    return socket;
  }
  // Whether the other end closes the connection after its last message.
  static bool IsLetGo(const UniqueFd& socket) {
    char byte = 0;
    ssize_t count = 0;
    while ((count = recv(socket.get(), &byte, 1, 0)) > 0) {
    }
    return count == 0 || errno == ECONNRESET;
  }

  gang::TempDir data_;
  std::unique_ptr<DirectSender> sender_;
  ByServer by_server_{Folder()};
  DirectPieces pieces_{by_server_};
};

TEST_F(DirectTest, SendsFilesOverOneConnection) {
  gang::RemoteFiles checkpoint = Checkpoint();
  std::string model;
  while (model.size() < kModelBytes) {
    const auto answer = pieces_.Read(checkpoint, "model.bin", model.size(), {});
    ASSERT_TRUE(answer.piece.ok());
    EXPECT_EQ(answer.piece->file_bytes, kModelBytes);
    EXPECT_EQ(answer.directly_from, "executor a at 127.0.0.1");
    model += answer.piece->data;
  }
  EXPECT_EQ(model, Model());
  EXPECT_EQ(pieces_.Read(checkpoint, "state/total.json", 0, {}).piece->data, "{}");
  EXPECT_EQ(pieces_.Read(checkpoint, "empty", 0, {}).piece->file_bytes, 0u);
  EXPECT_THAT(by_server_.reads, IsEmpty());
}

TEST_F(DirectTest, ResumesAFileAtTheRequestedByte) {
  gang::RemoteFiles checkpoint = Checkpoint();
  pieces_.Read(checkpoint, "model.bin", 0, {});
  const auto answer = pieces_.Read(checkpoint, "model.bin", kModelBytes - 7, {});
  EXPECT_EQ(answer.piece->data, Model().substr(kModelBytes - 7));
  EXPECT_NE(answer.directly_from, "");
}

TEST_F(DirectTest, FallsBackToTheServerWithAWrongKey) {
  gang::PieceServer server = Server();
  server.key = RandomKey();
  gang::RemoteFiles checkpoint = Checkpoint({server});
  const auto answer = pieces_.Read(checkpoint, "state/total.json", 0, {});
  EXPECT_EQ(answer.piece->data, "{}");
  EXPECT_EQ(answer.directly_from, "");
  EXPECT_THAT(by_server_.reads, ElementsAre("state/total.json@0"));
  EXPECT_THAT(checkpoint.servers, IsEmpty()) << "the executor is asked only once";
}

TEST_F(DirectTest, DoesNotReadFromASenderWithoutTheKey) {
  auto listener = Listen(kLoopback);
  ASSERT_TRUE(listener.ok());
  const auto refused = std::async(std::launch::async, [&] {
    const UniqueFd socket(accept(listener.value().socket.get(), nullptr, nullptr));
    return !AuthenticateFetcher(socket.get(), RandomKey());
  });
  gang::PieceServer server = Server();
  server.port = listener.value().port;
  gang::RemoteFiles checkpoint = Checkpoint({server});
  EXPECT_EQ(pieces_.Read(checkpoint, "state/total.json", 0, {}).directly_from, "");
}

TEST_F(DirectTest, AsksTheNextExecutorBeforeTheServer) {
  gang::PieceServer other = Server();
  other.key = RandomKey();
  gang::RemoteFiles checkpoint = Checkpoint({other, Server()});
  EXPECT_NE(pieces_.Read(checkpoint, "state/total.json", 0, {}).directly_from, "");
  EXPECT_THAT(checkpoint.servers, SizeIs(1));
}

TEST_F(DirectTest, SendsNothingOutsideOfACheckpointsFolder) {
  fs::create_symlink(Folder().parent_path() / "secret", Folder() / "link");
  fs::create_directory_symlink(Folder().parent_path(), Folder() / "up");
  const auto directly = [&](const std::string& folder, const std::string& file) {
    gang::RemoteFiles checkpoint = Checkpoint();
    checkpoint.folder = folder;
    return pieces_.Read(checkpoint, file, 0, {}).directly_from;
  };
  EXPECT_NE(directly("step-3-attempt-1", "empty"), "");
  EXPECT_EQ(directly("step-3-attempt-1", "../secret"), "");
  EXPECT_EQ(directly("step-3-attempt-1", "link"), "");
  EXPECT_EQ(directly("step-3-attempt-1", "up/secret"), "");
  EXPECT_EQ(directly("step-3-attempt-1", "state"), "");
  EXPECT_EQ(directly("step-3-attempt-1", "/etc/passwd"), "");
  EXPECT_EQ(directly("..", "checkpoints/secret"), "");
  EXPECT_EQ(directly("step-3-attempt-1/state", "total.json"), "");
  EXPECT_EQ(directly("", "secret"), "");
}

TEST_F(DirectTest, ContinuesThroughTheServerAfterABrokenConnection) {
  fs::resize_file(Folder() / "model.bin", kMoreThanSocketsHold);
  gang::RemoteFiles checkpoint = Checkpoint();
  uint64_t had = pieces_.Read(checkpoint, "model.bin", 0, {}).piece->data.size();
  sender_.reset();
  std::string next;
  for (;;) {
    next = pieces_.Read(checkpoint, "model.bin", had, {}).piece->data;
    if (!by_server_.reads.empty()) break;
    had += next.size();
  }
  EXPECT_THAT(by_server_.reads, ElementsAre("model.bin@" + std::to_string(had)));
  EXPECT_THAT(next, SizeIs(checkpoints::kPieceBytesMax));
  EXPECT_THAT(checkpoint.servers, IsEmpty());
}

TEST_F(DirectTest, AsksTheServerIfNoExecutorListens) {
  auto nobody = Listen(kLoopback);
  ASSERT_TRUE(nobody.ok());
  gang::PieceServer server = Server();
  server.port = nobody.value().port;
  nobody.value().socket.reset();
  gang::RemoteFiles checkpoint = Checkpoint({server});
  EXPECT_EQ(pieces_.Read(checkpoint, "state/total.json", 0, {}).piece->data, "{}");
  EXPECT_THAT(by_server_.reads, SizeIs(1));
}

// A listener with a full backlog that never accepts behaves like an unused address.
TEST_F(DirectTest, WaitsOnlyOnceForAnExecutorThatDoesNotAnswer) {
  auto silent = Listen(kLoopback);
  ASSERT_TRUE(silent.ok());
  gang::PieceServer server = Server();
  server.port = silent.value().port;
  gang::RemoteFiles checkpoint = Checkpoint({server});
  DirectPieces hasty(by_server_, {.connect = milliseconds(20), .greeting = milliseconds(20)});
  EXPECT_EQ(hasty.Read(checkpoint, "state/total.json", 0, {}).piece->data, "{}");
  EXPECT_THAT(checkpoint.servers, IsEmpty());
}

TEST_F(DirectTest, WaitsOnlyBrieflyForASilentSender) {
  auto listener = Listen(kLoopback);
  ASSERT_TRUE(listener.ok());
  UniqueFd socket;
  const std::string key = RandomKey();
  const auto answered = std::async(std::launch::async, [&] {
    socket = UniqueFd(accept(listener.value().socket.get(), nullptr, nullptr));
    return AuthenticateFetcher(socket.get(), key);
  });
  gang::RemoteFiles checkpoint =
      Checkpoint({{.address = kLoopback, .port = listener.value().port, .key = key}});
  DirectPieces hasty(by_server_, {.piece = milliseconds(20)});
  EXPECT_EQ(hasty.Read(checkpoint, "state/total.json", 0, {}).piece->data, "{}");
  EXPECT_THAT(by_server_.reads, SizeIs(1));
}

TEST_F(DirectTest, LimitsTheNumberOfReaders) {
  std::vector<UniqueFd> readers;
  for (size_t i = 0; i < kDirectReadersMax; ++i) {
    readers.push_back(Dial());
    ASSERT_TRUE(AuthenticateSender(readers.back().get(), sender_->key()));
  }
  EXPECT_TRUE(IsLetGo(Dial()));
  gang::RemoteFiles checkpoint = Checkpoint();
  EXPECT_EQ(pieces_.Read(checkpoint, "empty", 0, {}).directly_from, "");
  shutdown(readers.back().get(), SHUT_WR);
  EXPECT_TRUE(IsLetGo(readers.back()));
  EXPECT_TRUE(AuthenticateSender(Dial().get(), sender_->key()));
}

TEST_F(DirectTest, DisconnectsAnUnauthenticatedReader) {
  Start({.greeting = milliseconds(10)});
  EXPECT_TRUE(IsLetGo(Dial()));
}

TEST_F(DirectTest, DisconnectsAnIdleReader) {
  Start({.idle = milliseconds(10)});
  const UniqueFd socket = Dial();
  ASSERT_TRUE(AuthenticateSender(socket.get(), sender_->key()));
  EXPECT_TRUE(IsLetGo(socket));
}

TEST_F(DirectTest, DoesNotReadATooLongMessage) {
  const UniqueFd socket = Dial();
  ASSERT_TRUE(AuthenticateSender(socket.get(), sender_->key()));
  const std::string size = "\x7f\xff\xff\xff";
  ASSERT_EQ(send(socket.get(), size.data(), size.size(), MSG_NOSIGNAL), 4);
  EXPECT_TRUE(IsLetGo(socket));
}

TEST_F(DirectTest, EndsWhileSending) {
  fs::resize_file(Folder() / "model.bin", kMoreThanSocketsHold);
  gang::RemoteFiles checkpoint = Checkpoint();
  ASSERT_NE(pieces_.Read(checkpoint, "model.bin", 0, {}).directly_from, "");
  sender_.reset();
}

TEST_F(DirectTest, DoesNotFallBackAfterCancel) {
  auto silent = Listen(kLoopback);
  ASSERT_TRUE(silent.ok());
  gang::PieceServer server = Server();
  server.port = silent.value().port;
  gang::RemoteFiles checkpoint = Checkpoint({server});
  DirectPieces patient(by_server_, {.greeting = gang::kDeadline});
  auto reading = std::async(std::launch::async, [&] {
    return patient.Read(checkpoint, "state/total.json", 0, {}).piece.error().message;
  });
  // From here on it waits for a message that never comes.
  const UniqueFd socket(accept(silent.value().socket.get(), nullptr, nullptr));
  patient.Cancel();
  EXPECT_EQ(reading.get(), "cancelled");
  EXPECT_THAT(by_server_.reads, IsEmpty());
}

TEST_F(DirectTest, DoesNotListenWithoutAnAddress) {
  EXPECT_EQ(DirectSender(gang::Folders(data_.path()), data_.path() / "code", "").port(), 0);
  EXPECT_EQ(DirectSender(gang::Folders(data_.path()), data_.path() / "code", "no address").port(),
            0);
}

// A copy of a snapshot with two files.
class DirectCodeTest : public DirectTest {
 protected:
  DirectCodeTest() {
    code::Manifest manifest{
        .files = {{.path = "a.py", .bytes = 3, .sha256 = Sha256::HexOf("aaa")},
                  {.path = "b.py", .bytes = 4, .sha256 = Sha256::HexOf("bbbb")}},
        .links = {}};
    text_ = code::ToText(manifest);
    digest_ = code::DigestOf(text_);
    copy_ = data_.path() / "code" / digest_.substr(checkpoints::kDigestPrefix.size());
    const auto read = [this](const std::string& part, uint64_t offset,
                             std::string) -> Result<checkpoints::Piece> {
      const std::string bytes = part == code::kManifestPart ? text_ : "aaabbbb";
      return checkpoints::Piece{.data = bytes.substr(offset), .file_bytes = bytes.size()};
    };
    fs::create_directories(copy_.parent_path());
    EXPECT_TRUE(code::DownloadCopy({.name = "code", .digest = digest_, .read = read}, copy_, 0)
                    .status.ok());
  }

  gang::RemoteFiles Code() const {
    return {.name = {}, .folder = {}, .servers = {Server()}, .code = digest_};
  }

  std::string text_;
  std::string digest_;
  fs::path copy_;
};

TEST_F(DirectCodeTest, SendsTheManifestAndThePack) {
  gang::RemoteFiles files = Code();
  EXPECT_EQ(pieces_.Read(files, "manifest", 0, {}).piece->data, text_);
  const auto pack = pieces_.Read(files, "pack", 2, {});
  EXPECT_EQ(pack.piece->data, "abbbb");
  EXPECT_EQ(pack.piece->file_bytes, 7u);
  EXPECT_NE(pack.directly_from, "");
  EXPECT_THAT(by_server_.reads, IsEmpty());
}

TEST_F(DirectCodeTest, FallsBackToTheServerIfAFileHasAnotherSize) {
  fs::permissions(copy_ / "tree/b.py", fs::perms::owner_write, fs::perm_options::add);
  gang::WriteFile(copy_ / "tree/b.py", "bb");
  gang::RemoteFiles files = Code();
  pieces_.Read(files, "pack", 0, {});
  EXPECT_THAT(by_server_.reads, ElementsAre("pack@0"));
}

TEST_F(DirectCodeTest, ReadsNoOtherFiles) {
  for (const std::string& digest : {std::string("sha256:../../secret"), std::string("../secret"),
                                    "sha256:" + std::string(64, 'a')}) {
    gang::RemoteFiles files = Code();
    files.code = digest;
    pieces_.Read(files, "manifest", 0, {});
    files.servers = {Server()};
    pieces_.Read(files, "../stamps", 0, {});
  }
  EXPECT_THAT(by_server_.reads, testing::SizeIs(6)) << "the sender refused each";
}

}  // namespace
}  // namespace attune::agent
