#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "executor/gang/spec.h"
#include "executor/gang/words.h"

namespace attune::agent {

// An IPv4 address of this host.
struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool is_loopback = false;
};

// Those of the interfaces that are up, in the kernel's order.
std::vector<InterfaceAddress> InterfaceAddresses();

// The local end of a packet to `address` (IPv4), by the routing table; empty when there is no
// route. Nothing is sent.
std::string RouteTowards(const std::string& address);

// Where ranks of other hosts reach this one.
//
// `wanted` is an interface by name or one of its addresses (any of 127.0.0.0/8 is the loopback
// interface's), and is taken whatever it is; an error, when there is none such. If it is empty, the
// first of `routes` (local ends of routes, the likeliest first) that is an address of an interface
// and no loopback's is taken, else the first address that is no loopback's; without any, the host
// has none, and the result's address is empty.
Result<gang::HostAddress> ChooseAddress(const std::vector<InterfaceAddress>& addresses,
                                        const std::string& wanted,
                                        const std::vector<std::string>& routes);

}  // namespace attune::agent
