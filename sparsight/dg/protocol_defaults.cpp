#include "sparsight/dg/protocol_defaults.h"

#include <map>

#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/dg/algorithms/adrmx.h"
#include "sparsight/dg/algorithms/arm.h"
#include "sparsight/dg/algorithms/cad.h"
#include "sparsight/dg/algorithms/dann.h"
#include "sparsight/dg/algorithms/miro.h"
#include "sparsight/dg/algorithms/rdm.h"
#include "sparsight/dg/algorithms/swad.h"
#include "sparsight/dg/algorithms/transfer.h"
#include "sparsight/dg/algorithms/urm.h"

namespace sparsight {
namespace {

const std::map<std::string, std::vector<ProtocolDefault>>& by_algorithm() {
  static const std::map<std::string, std::vector<ProtocolDefault>> all{
      {"adrmx", adrmx_defaults()},       {"arm", arm_defaults()},      {"cad", cad_defaults()},
      {"cdann", dann_defaults()},        {"cond_cad", cad_defaults()}, {"dann", dann_defaults()},
      {"miro", miro_defaults()},         {"rdm", rdm_defaults()},      {"swad", swad_defaults()},
      {"transfer", transfer_defaults()}, {"urm", urm_defaults()}};
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
