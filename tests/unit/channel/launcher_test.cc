#include "channel/launcher.h"

#include <gmock/gmock.h>

namespace attune::channel {
namespace {

using testing::HasSubstr;

TEST(LauncherPackets, AreTheSameAfterARoundTrip) {
  const Fork fork{.request = 7,
                  .argv = {"program", "--flag"},
                  .environment = {{"ADDED", "1"}, {"REMOVED", std::nullopt}},
                  .working_directory = "/tmp",
                  .process_group = 12};
  EXPECT_EQ(ToPacket(*ParseFork(ToPacket(fork)).value()), ToPacket(fork));
  for (const std::string& packet :
       {ToPacket(Ready{.pid = 3}), ToPacket(Forked{.request = 7, .pid = 4}),
        ToPacket(Forked{.request = 7, .error = "no memory"}), ToPacket(Exited{4, 1, 0}),
        ToPacket(Exited{4, 0, 9})}) {
    const auto read = ParseFromLauncher(packet);
    ASSERT_TRUE(read.ok()) << read.error().message;
    std::visit(
        [&](const auto& each) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(each)>, Unknown>) {
            EXPECT_EQ(ToPacket(each), packet);
          } else {
            ADD_FAILURE() << packet;
          }
        },
        read.value());
  }
}

TEST(LauncherPackets, ReadsTheRequestNumberOfAMalformedFork) {
  const std::string packet = R"({"type": "fork", "request": 3, "argv": "no list"})";
  EXPECT_THAT(ParseFork(packet).error().message, HasSubstr("no list"));
  EXPECT_EQ(RequestNumber(packet), 3u);
  EXPECT_EQ(RequestNumber("[]"), 0u);
}

TEST(LauncherPackets, IgnoresUnknownTypes) {
  EXPECT_FALSE(ParseFork(R"({"type": "later"})").value());
  EXPECT_TRUE(std::holds_alternative<Unknown>(ParseFromLauncher(R"({"type": "later"})").value()));
}

}  // namespace
}  // namespace attune::channel
