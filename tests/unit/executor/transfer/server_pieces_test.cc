#include "executor/transfer/server_pieces.h"

#include "tests/unit/executor/agent/fake_server.h"

namespace attune::agent {
namespace {

TEST(ServerPieces, ReadsFailAfterCancelUntilClose) {
  FakeServer server;
  const std::shared_ptr<v1::Executors::Stub> stub = v1::Executors::NewStub(server.Channel());
  ServerPieces pieces([&] { return stub; }, "a token");
  gang::RemoteFiles checkpoint;
  const auto error = [&] {
    return pieces.Read(checkpoint, "model.bin", 0, {}).piece.error().message;
  };
  const std::string asked = error();  // the answer of a server without checkpoints
  pieces.Cancel();
  EXPECT_EQ(error(), "cancelled");
  pieces.Close();
  EXPECT_EQ(error(), asked);
  EXPECT_NE(asked, "cancelled");
}

TEST(ServerPieces, FailsWithoutAChannel) {
  ServerPieces pieces([] { return nullptr; }, "a token");
  gang::RemoteFiles checkpoint;
  EXPECT_EQ(pieces.Read(checkpoint, "model.bin", 0, {}).piece.error().code,
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace attune::agent
