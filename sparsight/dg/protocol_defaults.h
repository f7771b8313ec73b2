// Defaults in place of DomainBed's, which an algorithm or a model has on all datasets or on one. Algorithms declare
// them beside their options, models in dg_models.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sparsight {

struct ProtocolDefault {
  std::string set;  // a name of domain_sets(); "": every one of photographs
  std::string key;  // of the configuration: "optimizer.lr"
  double value = 0;
  bool searched = true;  // false: random search does not sample it
};

// Those of an algorithm, by its name; {} for most.
const std::vector<ProtocolDefault>& defaults_of_algorithm(const std::string& algorithm);

// The algorithms that have any, for tests.
std::vector<std::string> algorithms_with_defaults();

// What the list says of `key` on the dataset `set`: of the dataset by name before that of all. Null if nothing.
const ProtocolDefault* find_default(const std::vector<ProtocolDefault>& list, const std::string& key,
                                    const std::string& set);

}  // namespace sparsight
