#include "sparsight/dg/protocol_defaults.h"

#include <map>
#include <utility>

#include "sparsight/data/domainbed/domain_sets.h"

namespace sparsight {
namespace {

std::map<std::string, std::vector<ProtocolDefault>>& by_algorithm() {
  static std::map<std::string, std::vector<ProtocolDefault>> all;
  return all;
}

}  // namespace

void declare_defaults(const std::string& algorithm, std::vector<ProtocolDefault> defaults) {
  by_algorithm()[algorithm] = std::move(defaults);
}

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
                                    const std::string& set, const std::string& name) {
  const std::string group = domain_set(set).small_side > 0 ? kSmallImages : kPhotographs;
  const ProtocolDefault* of_group = nullptr;
  for (const ProtocolDefault& entry : list) {
    if (entry.key != key || (key.empty() && entry.name != name)) continue;
    if (entry.set == set) return &entry;
    if (entry.set == group || entry.set == kEverySet) of_group = &entry;
  }
  return of_group;
}

}  // namespace sparsight
