#include "sparsight/dist/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "tests/support/errors.h"

namespace sparsight::address_test {
namespace {

sockaddr_in bound_to(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return address;
}

}  // namespace

TEST(Address, ASocketIsBoundToOneAddress) {
  const Descriptor listener(dist::bound_socket("127.0.0.1", 0));
  EXPECT_EQ(ntohl(bound_to(listener).sin_addr.s_addr), INADDR_LOOPBACK);
}

TEST(Address, AnotherHostsAddressAndAPortInUseAreNamed) {
  const std::string other = testing::error_text([] { dist::bound_socket("192.0.2.1", 29500); });  // RFC 5737: nobody's
  EXPECT_NE(other.find("192.0.2.1 (MASTER_ADDR) is none of this host"), std::string::npos) << other;
  const Descriptor listener(dist::bound_socket("127.0.0.1", 0));
  const int64_t port = ntohs(bound_to(listener).sin_port);
  const std::string used = testing::error_text([&] { dist::bound_socket("127.0.0.1", port); });
  EXPECT_EQ(used, cat("port ", port, " of 127.0.0.1 is in use; choose another MASTER_PORT"));
}

TEST(Address, TheOwnAddressIsTheOneThatReachesTheOther) {
  EXPECT_EQ(dist::own_address("127.0.0.1", 29500), "127.0.0.1");
  EXPECT_EQ(dist::own_address("127.0.0.9", 29500), "127.0.0.1");
}

TEST(Address, ARankIsNamedWithItsHost) { EXPECT_EQ(dist::rank_name(1, 3).find("rank 1 of 3 ("), 0u); }

}  // namespace sparsight::address_test
