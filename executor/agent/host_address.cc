#include "executor/agent/host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "executor/gang/channel_types.h"
#include "system/unique_fd.h"

namespace attune::agent {
namespace {

constexpr in_port_t kAnyPort = 9;  // never used: the datagram socket sends nothing

std::string ToText(const in_addr& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &address, text.data(), text.size());
}

bool IsLoopback(const std::string& address) {
  in_addr parsed{};
  return inet_pton(AF_INET, address.c_str(), &parsed) == 1 &&
         ntohl(parsed.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

std::string List(const std::vector<InterfaceAddress>& addresses) {
  std::string list;
  for (const InterfaceAddress& each : addresses)
    list += (list.empty() ? "" : ", ") + each.interface + " (" + each.address + ")";
  return list.empty() ? "none with an IPv4 address" : list;
}

}  // namespace

std::vector<InterfaceAddress> InterfaceAddresses() {
  std::vector<InterfaceAddress> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    addresses.push_back({entry->ifa_name,
                         ToText(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr),
                         (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return addresses;
}

std::string LocalAddressTowards(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kAnyPort);
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return "";
  const UniqueFd datagrams(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in local{};
  socklen_t size = sizeof local;
  if (!datagrams || connect(datagrams.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 ||
      getsockname(datagrams.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    return "";
  return ToText(local.sin_addr);
}

Result<gang::HostAddress> ChooseAddress(const std::vector<InterfaceAddress>& addresses,
                                        const std::string& wanted,
                                        const std::vector<std::string>& routes) {
  const auto at = [&](const std::string& address) {
    return std::ranges::find(addresses, address, &InterfaceAddress::address);
  };
  const auto chosen = [](const InterfaceAddress& each) {
    return gang::HostAddress{each.address, each.interface};
  };
  if (!wanted.empty()) {
    const auto named = std::ranges::find(addresses, wanted, &InterfaceAddress::interface);
    if (named != addresses.end()) return chosen(*named);
    if (const auto found = at(wanted); found != addresses.end()) return chosen(*found);
    const auto loopback = std::ranges::find(addresses, true, &InterfaceAddress::is_loopback);
    if (IsLoopback(wanted) && loopback != addresses.end())
      return gang::HostAddress{wanted, loopback->interface};
    return Invalid("--interface: " + wanted +
                   " is neither an interface of this host nor the IPv4 address of one; it has " +
                   List(addresses));
  }
  for (const std::string& route : routes) {
    const auto found = at(route);
    if (found != addresses.end() && !found->is_loopback) return chosen(*found);
  }
  const auto other = std::ranges::find(addresses, false, &InterfaceAddress::is_loopback);
  return other == addresses.end() ? gang::HostAddress{} : chosen(*other);
}

}  // namespace attune::agent
