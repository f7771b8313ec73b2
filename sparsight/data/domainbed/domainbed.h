// Data of several environments as DomainBed splits them (Gulrajani and Lopez-Paz 2021, "In Search of Lost Domain
// Generalization"): the images of every environment are shuffled with a seed of trial and environment; the first fifth
// is "out", the rest "in". The "in" images of the training environments train, their "out" images validate. Everything
// is evaluated: the rest is the monitor, so that an evaluation passes over each image once.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct DomainBedOptions {
  std::string set = "rotated_mnist";
  std::string root;
  std::vector<int64_t> test_envs = {0};
  int64_t trial = 0;
  double holdout = 0.2;
  int64_t limit = 0;
  int64_t channels = 3;
  void declare(OptionSet& set);
};

// The names of `set`: those of domain_sets().
std::vector<std::string> domainbed_names();

// Images of all environments; a domain is an environment. Raises Error for files that differ from the published ones.
DataSetPtr domainbed_environments(const DomainBedOptions& options, uint64_t seed);

// Indices of an environment of `images` images. out: floor(holdout * images), then in. With a limit above 0 at most so
// many of them are used, the first of both in proportion.
struct HoldoutSplit {
  std::vector<int64_t> out, in;
};
HoldoutSplit holdout_split(int64_t images, double holdout, int64_t trial, int64_t environment, int64_t limit = 0);

// Domain 2 e is "<environment e>/in", 2 e + 1 "<environment e>/out", in all splits. The test split is all images of the
// test environments; without any, it is the validation split.
DataSplits make_domainbed(const DomainBedOptions& options, const DataContext& context);

}  // namespace sparsight
