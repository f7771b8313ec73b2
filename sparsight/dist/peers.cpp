#include "sparsight/dist/peers.h"

#include <algorithm>
#include <sstream>

#include "sparsight/core/error.h"

namespace sparsight::dist {

std::string Peer::to_text() const {
  std::string text = host;
  for (const std::string& address : addresses) text += "\n" + address;
  return text;
}

Peer Peer::from_text(const std::string& text) {
  std::istringstream lines(text);
  Peer peer;
  std::getline(lines, peer.host);
  for (std::string line; std::getline(lines, line);) peer.addresses.push_back(line);
  return peer;
}

std::vector<int64_t> find_peers(const std::string& error, const std::vector<Peer>& peers,
                                const std::vector<int64_t>& ranks) {
  std::vector<int64_t> found;
  for (const int64_t rank : ranks)
    if (std::ranges::any_of(peers.at(static_cast<size_t>(rank)).addresses, [&](const std::string& address) {
          return error.find("[" + address + "]") != std::string::npos;
        }))
      found.push_back(rank);
  return found;
}

std::string describe_peers(const std::vector<int64_t>& ranks, const std::vector<Peer>& peers) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, ranks.size()); ++i) {
    const bool last = i + 1 == ranks.size();
    text += cat(i == 0 ? ""
                : last ? " or "
                       : ", ",
                "rank ", ranks[i], " (", peers.at(static_cast<size_t>(ranks[i])).host, ")");
  }
  return ranks.size() > kShown ? cat(text, " or ", ranks.size() - kShown, " others") : text;
}

std::string gloo_reason(const std::string& error) {
  std::string reason = error.substr(0, error.find('\n'));
  if (const size_t place = reason.find("] "); reason.starts_with("[/") && place != std::string::npos)
    reason.erase(0, place + 2);
  return reason.substr(0, reason.find(". This is typically"));
}

}  // namespace sparsight::dist
