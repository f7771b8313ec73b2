#include "sparsight/data/transforms/transform_options.h"

namespace sparsight {

void TransformOptions::declare(OptionSet& set) {
  set.tables("train", &train, "steps applied to each training image, as [{op = \"flip\"}, ...]");
  set.tables("eval", &eval, "steps applied to each image that is evaluated, explained or predicted");
  set.real("label_smoothing", &label_smoothing, {0, 0.999}, "part of the target spread evenly over all classes");
  set.real("mixup", &mixup, {0, 100}, "alpha of mixup's Beta(alpha, alpha); 0 to switch off");
  set.real("cutmix", &cutmix, {0, 100}, "alpha of cutmix's Beta(alpha, alpha); 0 to switch off");
}

}  // namespace sparsight
