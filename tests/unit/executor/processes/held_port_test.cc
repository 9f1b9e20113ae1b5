#include "executor/processes/held_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

#include "system/unique_fd.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::HasSubstr;

// Whether a server that sets SO_REUSEADDR can listen on this port on all addresses.
bool Listens(int port) {
  const UniqueFd server(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
  return bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
         listen(server.get(), 1) == 0;
}

TEST(HeldPort, IsReservedExceptForAServerThatNamesIt) {
  std::vector<HeldPort> ports;
  std::set<int> numbers;
  for (int i = 0; i < 1000; ++i) {
    auto port = HeldPort::Hold();
    ASSERT_TRUE(port.ok()) << port.error().message;
    numbers.insert(port.value().number());
    ports.push_back(std::move(port.value()));
  }
  EXPECT_EQ(numbers.size(), ports.size());
  EXPECT_TRUE(Listens(ports.front().number()));
}

class TorchrunTest : public GangFixture {};

TEST_F(TorchrunTest, RanksGetTheVariablesOfTorchrun) {
  GangSpec spec = PlainWorker(
      {"env:RANK", "env:WORLD_SIZE", "env:LOCAL_RANK", "env:LOCAL_WORLD_SIZE", "env:GROUP_RANK",
       "env:GROUP_WORLD_SIZE", "env:NODE_RANK", "env:ROLE_NAME", "env:ROLE_RANK",
       "env:ROLE_WORLD_SIZE", "env:TORCHELASTIC_RUN_ID", "env:TORCHELASTIC_RESTART_COUNT",
       "env:TORCHELASTIC_MAX_RESTARTS", "env:MASTER_ADDR", "env:MASTER_PORT"},
      2);
  spec.attempt = {.sweep = 3, .trial = 17, .attempt = 2, .epoch = 1};
  spec.max_restarts = 4;
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  const std::string log = Log(spec, 1);
  EXPECT_THAT(log, HasSubstr("RANK=1\nWORLD_SIZE=2\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\n"
                             "GROUP_RANK=0\nGROUP_WORLD_SIZE=1\nNODE_RANK=0\nROLE_NAME=default\n"
                             "ROLE_RANK=1\nROLE_WORLD_SIZE=2\nTORCHELASTIC_RUN_ID=s3-17\n"
                             "TORCHELASTIC_RESTART_COUNT=1\nTORCHELASTIC_MAX_RESTARTS=4\n"
                             "MASTER_ADDR=127.0.0.1\nMASTER_PORT="));
  const auto port = [](const std::string& text) { return text.substr(text.find("MASTER_PORT=")); };
  EXPECT_EQ(port(log), port(Log(spec, 0)));
}

TEST_F(TorchrunTest, GangsOnOneHostMeetAtDifferentPorts) {
  const GangSpec one = PlainWorker({"env:MASTER_PORT", "report:1", "hang"});
  const GangSpec other = PlainWorker({"env:MASTER_PORT", "report:1", "hang"});
  supervisor_->Run(one);
  supervisor_->Run(other);
  ASSERT_TRUE(facts_.Wait<Report>(one.attempt) && facts_.Wait<Report>(other.attempt));
  const auto port = [&](const GangSpec& spec) {
    const std::string log = Log(spec);
    return std::stoi(log.substr(log.find("MASTER_PORT=") + 12));
  };
  EXPECT_NE(port(one), port(other));
}

TEST_F(TorchrunTest, ThreadsAndBufferingAreSetUnlessTheUserSetsThem) {
  GangSpec spec = PlainWorker({"env:OMP_NUM_THREADS", "env:PYTHONUNBUFFERED"});
  spec.ranks[0].cpus = 3;
  spec.program.environment = {{"PYTHONUNBUFFERED", "0"}};
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_THAT(Log(spec), HasSubstr("OMP_NUM_THREADS=3\nPYTHONUNBUFFERED=0\n"));
}

}  // namespace
}  // namespace attune::gang
