#include "sparsight/dist/address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/printable.h"

namespace sparsight::dist {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(const std::string& address, int64_t port, int kind) {
  addrinfo hints{};
  hints.ai_socktype = kind;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) fail("the address ", printable(address), " (MASTER_ADDR) cannot be resolved: ", gai_strerror(error));
  return {found, freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) fail("this host's address cannot be read: ", gai_strerror(error));
  return text.data();
}

}  // namespace

std::string host_name() {
  std::array<char, 256> host{};
  return gethostname(host.data(), host.size() - 1) == 0 ? printable(host.data()) : "unknown host";
}

std::string rank_name(int64_t rank, int64_t size) { return cat("rank ", rank, " of ", size, " (", host_name(), ")"); }

std::vector<std::string> interface_addresses(const std::string& interface) {
  std::vector<std::string> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
  for (const ifaddrs* one = all.get(); one; one = one->ifa_next) {
    if (!one->ifa_addr || interface != one->ifa_name) continue;
    if (one->ifa_addr->sa_family == AF_INET) found.push_back(numeric(one->ifa_addr, sizeof(sockaddr_in)));
    if (one->ifa_addr->sa_family == AF_INET6) found.push_back(numeric(one->ifa_addr, sizeof(sockaddr_in6)));
  }
  return found;
}

// A datagram socket that is connected has an address, and sends nothing.
std::string own_address(const std::string& address, int64_t port) {
  int problem = 0;
  const Addresses all = resolve(address, port, SOCK_DGRAM);
  for (const addrinfo* one = all.get(); one; one = one->ai_next) {
    const Descriptor probe(socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (probe.get() >= 0 && connect(probe.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
      return numeric(reinterpret_cast<const sockaddr*>(&own), size);
    problem = errno;
  }
  fail("no way leads from this host to the address ", printable(address), " (MASTER_ADDR): ", std::strerror(problem));
}

int bound_socket(const std::string& address, int64_t port) {
  int problem = 0;
  const Addresses all = resolve(address, port, SOCK_STREAM);
  for (const addrinfo* one = all.get(); one; one = one->ai_next) {
    Descriptor listener(socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    constexpr int kYes = 1;
    if (listener.get() >= 0 && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes) == 0 &&
        bind(listener.get(), one->ai_addr, one->ai_addrlen) == 0 && listen(listener.get(), SOMAXCONN) == 0)
      return listener.release();
    problem = errno;
  }
  if (problem == EADDRINUSE) fail("port ", port, " of ", printable(address), " is in use; choose another MASTER_PORT");
  if (problem == EADDRNOTAVAIL)
    fail("the address ", printable(address),
         " (MASTER_ADDR) is none of this host; give all ranks an address of the host of rank 0");
  fail("cannot listen on port ", port, " of ", printable(address), ": ", std::strerror(problem));
}

}  // namespace sparsight::dist
