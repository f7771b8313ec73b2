// A common corruption as a transform (data/corruptions/).
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct CorruptOptions {
  std::string kind = "gaussian_noise";
  int64_t severity = 3;
  void declare(OptionSet& set);
};

// Images stay bytes: as in ImageNet-C, values are cut to whole levels. Raises UsageError for an unknown kind.
TransformOp make_corrupt(const CorruptOptions& options);

}  // namespace sparsight
