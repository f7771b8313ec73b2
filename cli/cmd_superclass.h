// `sparsight superclass`: super-classes for guided routers, found in confusions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/config_arguments.h"

namespace sparsight::cli {

// What is counted and how it is clustered.
struct SuperclassSearchArguments {
  std::int64_t experts = 0, folds = 5, min_size = 1;
  std::string confusion = "hard", method = "spectral_ward", groups;
  double tau = 0.1;
};

struct SuperclassArguments {
  SuperclassSearchArguments search;
  std::string run, checkpoint, split = "val", out;
  std::vector<std::string> overrides;
  bool json = false;
};

struct SuperclassTrainArguments {
  SuperclassSearchArguments search;
  ConfigArguments config;
  std::string out;
};

struct SuperclassCompareArguments {
  std::string first, second;
};

void run_superclass(const SuperclassArguments& arguments);
void run_superclass_train(const SuperclassTrainArguments& arguments);
void run_superclass_compare(const SuperclassCompareArguments& arguments);

}  // namespace sparsight::cli
