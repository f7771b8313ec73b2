// The addresses of this host on which a group listens, and its name in messages. No torch, nothing of c10d.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::dist {

// This host's name, fit to be printed.
std::string host_name();

// "rank 1 of 3 (host)"
std::string rank_name(int64_t rank, int64_t size);

// The addresses of one of this host's network interfaces; none where it has none of that name.
std::vector<std::string> interface_addresses(const std::string& interface);

// This host's address from which `address` is reached, "10.0.0.7": of its own addresses, themselves. Raises Error for a
// name that cannot be resolved, and where no way leads there.
std::string own_address(const std::string& address, int64_t port);

// A TCP socket that is bound to this address of this host, and to no other one. Raises Error where the address is
// another host's, or its port is in use.
int bound_socket(const std::string& address, int64_t port);

}  // namespace sparsight::dist
