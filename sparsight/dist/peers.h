// The ranks of a group as its errors name them. No torch, nothing of c10d.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::dist {

struct Peer {
  std::string host;
  std::vector<std::string> addresses;  // on which it listens

  // For the other ranks.
  std::string to_text() const;
  static Peer from_text(const std::string& text);
};

// Those of `ranks` whose address is in gloo's error, "Connection closed by peer [10.0.0.7]:4012": several where ranks
// share an address, none where the error has no address. peers: by rank.
std::vector<int64_t> find_peers(const std::string& error, const std::vector<Peer>& peers,
                                const std::vector<int64_t>& ranks);

// "rank 1 (host)", "rank 1 (host) or rank 3 (other)"; of many, a few.
std::string describe_peers(const std::vector<int64_t>& ranks, const std::vector<Peer>& peers);

// gloo's error in one line, without the place in its source before it and the advice behind it.
std::string gloo_reason(const std::string& error);

}  // namespace sparsight::dist
