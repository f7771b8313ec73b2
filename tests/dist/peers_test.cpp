#include "sparsight/dist/peers.h"

#include <gtest/gtest.h>

namespace sparsight::peers_test {
namespace {

using dist::Peer;

// Ranks 1 and 2 share a host; rank 3 listens on two addresses.
const std::vector<Peer> kPeers{
    {"first", {"10.0.0.1"}}, {"second", {"10.0.0.2"}}, {"second", {"10.0.0.2"}}, {"third", {"10.0.0.23", "fe80::1"}}};

std::vector<int64_t> found(const std::string& error, const std::vector<int64_t>& ranks) {
  return dist::find_peers(error, kPeers, ranks);
}

}  // namespace

TEST(Peers, AreFoundByTheAddressInAnError) {
  using Ranks = std::vector<int64_t>;
  EXPECT_EQ(found("Connection closed by peer [10.0.0.1]:4012", {0, 1, 2, 3}), Ranks{0});
  EXPECT_EQ(found("Connection closed by peer [10.0.0.2]:4012", {0, 1, 2, 3}), (Ranks{1, 2}));
  EXPECT_EQ(found("Connection closed by peer [10.0.0.2]:4012", {0, 2, 3}), Ranks{2});
  EXPECT_EQ(found("Read error [fe80::1]:4012: Connection reset by peer", {0, 1, 2, 3}), Ranks{3});
  EXPECT_EQ(found("Connection closed by peer [10.0.0.9]:4012", {0, 1, 2, 3}), Ranks{});
  EXPECT_EQ(found("Timed out waiting 5000ms for recv operation to complete", {0, 1, 2, 3}), Ranks{});
}

TEST(Peers, AreNamedWithTheirHosts) {
  EXPECT_EQ(dist::describe_peers({3}, kPeers), "rank 3 (third)");
  EXPECT_EQ(dist::describe_peers({0, 3}, kPeers), "rank 0 (first) or rank 3 (third)");
  EXPECT_EQ(dist::describe_peers({0, 1, 3}, kPeers), "rank 0 (first), rank 1 (second) or rank 3 (third)");
  const std::vector<Peer> many(9, Peer{"host", {}});
  EXPECT_EQ(dist::describe_peers({1, 2, 3, 4, 5, 6}, many),
            "rank 1 (host), rank 2 (host), rank 3 (host), rank 4 (host) or 2 others");
}

TEST(Peers, TellOthersWhereTheyAre) {
  const Peer there = Peer::from_text(kPeers[3].to_text());
  EXPECT_EQ(there.host, "third");
  EXPECT_EQ(there.addresses, kPeers[3].addresses);
  EXPECT_TRUE(Peer::from_text(Peer{"host", {}}.to_text()).addresses.empty());
}

// Gloo's texts are those of torch 2.13.
TEST(Peers, TheReasonIsWithoutSourceAndAdvice) {
  EXPECT_EQ(
      dist::gloo_reason("[/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:4012. "
                        "This is typically caused by a remote worker crashing. Check the logs.\nException raised"),
      "Connection closed by peer [10.0.0.2]:4012");
  EXPECT_EQ(dist::gloo_reason("rank 1 has not come within 2 s"), "rank 1 has not come within 2 s");
}

}  // namespace sparsight::peers_test
