#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// An IPv4 address of this host.
struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool is_loopback = false;
};

// Addresses of the interfaces that are up, in the kernel's order.
std::vector<InterfaceAddress> InterfaceAddresses();

// The source address of packets to `address` (IPv4), from the routing table; empty if there is no
// route. Sends nothing.
std::string LocalAddressTowards(const std::string& address);

// Chooses the address at which ranks on other hosts reach this host.
//
// `wanted` is the name of an interface or one of its addresses; all of 127.0.0.0/8 belongs to the
// loopback interface. An unknown interface or address is an error.
//
// If `wanted` is empty, the result is the first of `routes` (local addresses of routes, the most
// likely first) that belongs to an interface and is not loopback. Otherwise it is the first address
// that is not loopback. If there is none, the result's address is empty.
Result<gang::HostAddress> ChooseAddress(const std::vector<InterfaceAddress>& addresses,
                                        const std::string& wanted,
                                        const std::vector<std::string>& routes);

}  // namespace attune::agent
