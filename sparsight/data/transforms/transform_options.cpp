#include "sparsight/data/transforms/transform_options.h"

namespace sparsight {

void TransformOptions::declare(OptionSet& set) {
  set.tables("train", &train, "steps applied to each training image, as [{op = \"flip\"}, ...]");
  set.tables("eval", &eval, "steps applied to each image in evaluation, explanation and prediction");
  set.flag("val_augment", &val_augment,
           "during training, evaluate images of training domains after the steps of `train`, the same random ones each "
           "time");
  set.real("label_smoothing", &label_smoothing, {0, 0.999},
           "label smoothing: fraction of the target spread evenly over all classes");
  set.real("mixup", &mixup, {0, 100}, "mixup: alpha of Beta(alpha, alpha); 0: off");
  set.real("cutmix", &cutmix, {0, 100}, "CutMix: alpha of Beta(alpha, alpha); 0: off");
}

}  // namespace sparsight
