// A dataset of the image files listed in a manifest (readers/manifest.h).
#pragma once

#include "sparsight/data/sets/splits.h"

namespace sparsight {

struct ManifestOptions {
  std::string root;
  int64_t channels = 3;
  SplitOptions splits;
  void declare(OptionSet& set);
};

DataSplits make_manifest(const ManifestOptions& options, const DataContext& context);

}  // namespace sparsight
