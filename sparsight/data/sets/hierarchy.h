// hierarchy: generated images whose classes form groups. The group, which is the super-class, is visible in the coarse
// colour and shape of an object; the class within it only in a texture of single points. So a small router can learn
// the groups, and telling the classes apart takes most of a model. Needs no files. Image i of a split is a pure
// function of (seed, split, i) and has the same bits on every machine.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct DataContext;

struct HierarchyOptions {
  int64_t groups = 10;
  int64_t classes_per_group = 5;
  int64_t side = 32;
  int64_t shifts = 3;
  double contrast = 0.2;
  double noise = 24;
  int64_t train = 10000;
  int64_t validation = 2000;
  int64_t test = 2000;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// Class k belongs to group k / classes_per_group. Labels cycle within a split, so that every prefix is balanced.
DataSplits make_hierarchy(const HierarchyOptions& options, const DataContext& context);

}  // namespace sparsight
