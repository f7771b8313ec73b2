#include "sparsight/dg/protocol_defaults.h"

#include <map>

#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/dg/algorithms/arm.h"
#include "sparsight/dg/algorithms/miro.h"
#include "sparsight/dg/algorithms/swad.h"

namespace sparsight {
namespace {

const std::map<std::string, std::vector<ProtocolDefault>>& by_algorithm() {
  static const std::map<std::string, std::vector<ProtocolDefault>> all{
      {"arm", arm_defaults()}, {"miro", miro_defaults()}, {"swad", swad_defaults()}};
  return all;
}

}  // namespace

const std::vector<ProtocolDefault>& defaults_of_algorithm(const std::string& algorithm) {
  static const std::vector<ProtocolDefault> none;
  const auto found = by_algorithm().find(algorithm);
  return found == by_algorithm().end() ? none : found->second;
}

std::vector<std::string> algorithms_with_defaults() {
  std::vector<std::string> names;
  for (const auto& [name, defaults] : by_algorithm()) names.push_back(name);
  return names;
}

const ProtocolDefault* find_default(const std::vector<ProtocolDefault>& list, const std::string& key,
                                    const std::string& set) {
  const ProtocolDefault* of_all = nullptr;
  for (const ProtocolDefault& entry : list) {
    if (entry.key != key) continue;
    if (entry.set == set) return &entry;
    if (entry.set.empty() && domain_set(set).small_side == 0) of_all = &entry;
  }
  return of_all;
}

}  // namespace sparsight
