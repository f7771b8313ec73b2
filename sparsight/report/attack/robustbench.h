// A finished AutoAttack as RobustBench's leaderboards list it: the file model_info/<dataset>/<threat>/<name>.json of
// github.com/RobustBench/robustbench. Pure functions of result.json (docs/attacks.md).
#pragma once

#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

// What the attack does not know.
struct RobustBenchFields {
  std::string link, name, authors, venue, footnote;
  std::string dataset;       // "": as the attack calls it
  std::string architecture;  // "": the name of the model
  bool additional_data = false;
  int64_t number_forward_passes = 1;
  double reported = std::numeric_limits<double>::quiet_NaN();  // in percent; NaN: what the attack found
  void declare(OptionSet& set);
};

// Each assignment is as "venue=ICLR 2020". Raises UsageError for an unknown key, with the nearest one, and for a value
// of another type.
RobustBenchFields parse_robustbench_fields(const std::vector<std::string>& assignments);

struct RobustBenchEntry {
  Json info;                       // the content of the file
  std::string folder;              // where it belongs: "model_info/cifar10/Linf"
  std::vector<std::string> empty;  // fields without a value, which a leaderboard shows
};

// Accuracies are in percent with two decimals, as text; `unreliable` is whether the attack has warnings. Raises Error
// unless the attack is the standard AutoAttack, of all images of the test split (of ImageNet the validation split), at
// the epsilon of the dataset's leaderboard, or any if `any_epsilon`: that of CIFAR-10 for a dataset without one.
RobustBenchEntry robustbench_entry(const Json& result, const RobustBenchFields& fields, bool any_epsilon);

}  // namespace sparsight
