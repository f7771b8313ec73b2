// What an algorithm or a model has in place of DomainBed's usual hyper-parameters, on all datasets or on some: another
// default, another range of random search, another name. Algorithms declare it beside their options, models in
// dg_models.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

// Groups of datasets, in place of a name of domain_sets().
inline constexpr const char* kPhotographs = "";
inline constexpr const char* kSmallImages = "small images";
inline constexpr const char* kEverySet = "every dataset";

struct ProtocolDefault {
  std::string set;  // a name of domain_sets(), or a group
  std::string key;  // of the configuration: "optimizer.lr"; "": DomainBed draws `name`, but no algorithm uses it
  Json value;       // null: the usual one
  // dg/random_range.h; "": it is not sampled. Nothing: the usual one.
  std::optional<std::string> range = {};
  // The hyper-parameter that the setting follows, where that is another one than usual: "lr_g". The usual one is
  // still drawn, as in DomainBed, but not used.
  std::string name = {};
};

// Registers those of an algorithm, beside the algorithm itself (dg/algorithms/register_domain_algorithms.cpp).
void declare_defaults(const std::string& algorithm, std::vector<ProtocolDefault> defaults);

// Those of an algorithm, by its name; {} for most.
const std::vector<ProtocolDefault>& defaults_of_algorithm(const std::string& algorithm);

// The algorithms that have any, for tests.
std::vector<std::string> algorithms_with_defaults();

// What the list says of `key` on the dataset `set`: of the dataset by name before that of a group. Null if nothing.
// name: which one, where the key is "".
const ProtocolDefault* find_default(const std::vector<ProtocolDefault>& list, const std::string& key,
                                    const std::string& set, const std::string& name = {});

}  // namespace sparsight
