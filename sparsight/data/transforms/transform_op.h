// One step of a transform pipeline: an image in, an image out.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"
#include "sparsight/core/registry.h"
#include "sparsight/engine/preprocess.h"

namespace sparsight {

// The randomness of one view of an image in training: samples of this view alone, and those that all views of the image
// share.
struct ViewRandom : RandomStream {
  explicit ViewRandom(const RandomStream& view) : ViewRandom(view, view, 0) {}
  ViewRandom(const RandomStream& view, const RandomStream& image, int64_t number)
      : RandomStream(view), of_image(image), epoch(number) {}
  RandomStream of_image;  // the same in every epoch
  int64_t epoch;          // from 0 on
};

// image: [C,H,W], uint8 until an op (or the pipeline's end) converts it to fp32. Random samples come from `random`
// alone, so the result is a function of the image and the stream. Must be callable from several threads at once.
struct TransformOp : std::function<at::Tensor(const at::Tensor& image, ViewRandom& random)> {
  using function::function;
  // What it does to bytes without tensors (engine/preprocess.h): at most one step. Nothing for an op that has no such
  // form, as one that draws random numbers.
  std::optional<std::vector<engine::PreprocessStep>> compiled = {};
};

// Every op that a pipeline can name.
Registry<TransformOp>& transform_ops();

// Raises UsageError unless `range` is [smallest, largest]; `op` and `key` are names for the error.
void check_range(const char* op, const char* key, const std::vector<double>& range);

}  // namespace sparsight
