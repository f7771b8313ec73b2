// The [transforms] section: pipelines for training and evaluation, and transforms of whole training batches.
#pragma once

#include "sparsight/core/registry.h"

namespace sparsight {

struct TransformOptions {
  Json train, eval;
  double label_smoothing = 0;
  double mixup = 0;
  double cutmix = 0;
  bool val_augment = false;
  void declare(OptionSet& set);
};

}  // namespace sparsight
