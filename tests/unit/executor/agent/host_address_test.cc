#include "executor/agent/host_address.h"

#include <gmock/gmock.h>

namespace attune::agent {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::StartsWith;

const std::vector<InterfaceAddress> kHost = {{"lo", "127.0.0.1", true},
                                             {"docker0", "172.17.0.1", false},
                                             {"eth0", "10.0.0.3", false},
                                             {"ib0", "10.1.0.3", false}};

std::string Chosen(const std::vector<InterfaceAddress>& addresses, const std::string& wanted,
                   const std::vector<std::string>& routes) {
  const auto chosen = ChooseAddress(addresses, wanted, routes);
  return chosen.ok() ? chosen.value().interface + " " + chosen.value().address
                     : "! " + chosen.error().message;
}

TEST(HostAddress, UsesTheRouteToTheServer) {
  EXPECT_EQ(Chosen(kHost, "", {"10.1.0.3", "10.0.0.3"}), "ib0 10.1.0.3");
}

TEST(HostAddress, UsesTheDefaultRouteIfTheServerIsOnThisHost) {
  EXPECT_EQ(Chosen(kHost, "", {"127.0.0.1", "10.0.0.3"}), "eth0 10.0.0.3");
}

TEST(HostAddress, UsesTheFirstNonLoopbackAddressWithoutARoute) {
  EXPECT_EQ(Chosen(kHost, "", {"127.0.0.1", ""}), "docker0 172.17.0.1");
  EXPECT_EQ(Chosen(kHost, "", {"fd00::2"}), "docker0 172.17.0.1");
}

TEST(HostAddress, NeverChoosesLoopbackByItself) {
  EXPECT_EQ(Chosen({kHost[0]}, "", {"127.0.0.1"}), " ");
}

TEST(HostAddress, AcceptsTheNameOrTheAddressOfAnInterface) {
  EXPECT_EQ(Chosen(kHost, "eth0", {"10.1.0.3"}), "eth0 10.0.0.3");
  EXPECT_EQ(Chosen(kHost, "10.0.0.3", {"10.1.0.3"}), "eth0 10.0.0.3");
  EXPECT_EQ(Chosen(kHost, "lo", {"10.1.0.3"}), "lo 127.0.0.1");
  EXPECT_EQ(Chosen(kHost, "127.0.0.9", {"10.1.0.3"}), "lo 127.0.0.9");
}

TEST(HostAddress, AnErrorListsTheInterfacesOfThisHost) {
  EXPECT_THAT(
      Chosen({kHost[0], kHost[2]}, "eth7", {}),
      AllOf(StartsWith("! --interface: eth7 "), EndsWith("lo (127.0.0.1), eth0 (10.0.0.3)")));
  EXPECT_THAT(Chosen(kHost, "10.0.0.4", {}), StartsWith("! --interface: 10.0.0.4 "));
  EXPECT_THAT(Chosen(kHost, "127.0.0.1.example", {}), StartsWith("! --interface: "));
}

TEST(HostAddress, ThisHostHasALoopbackAndARouteToItself) {
  const auto addresses = InterfaceAddresses();
  EXPECT_TRUE(std::ranges::any_of(addresses, &InterfaceAddress::is_loopback));
  EXPECT_EQ(LocalAddressTowards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(LocalAddressTowards("no address"), "");
}

}  // namespace
}  // namespace attune::agent
