// Weights of the classes in the training loss, for data in which some classes are rare. Letters: moe/axes.md; K here is
// classes.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/catalogue/train_options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

// [K] fp64, as set in [train] class_weights; undefined for "none". "balanced" gives class k N / (K n_k), where n_k of
// the N images in `images` are of it and K counts the classes that have images (scikit-learn's class_weight): every
// class then has the same share of the loss, and the mean weight of an image is 1. A class without images gets 0 and a
// warning, since the loss could not tell the model anything of it. Raises UsageError for another number of weights than
// classes, for weights of which no image has one above 0, and where the task loss is not the softmax cross-entropy of
// one label per image.
at::Tensor training_class_weights(const TrainOptions& options, const DataSet& images);

}  // namespace sparsight
