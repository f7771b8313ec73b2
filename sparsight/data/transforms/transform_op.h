// One step of a transform pipeline: an image in, an image out.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"
#include "sparsight/core/registry.h"

namespace sparsight {

// image: [C,H,W], uint8 until an op (or the pipeline's end) converts it to fp32. Random samples come from `random`
// alone, so the result is a function of the image and the stream. Must be callable from several threads at once.
using TransformOp = std::function<at::Tensor(const at::Tensor& image, RandomStream& random)>;

// Every op that a pipeline can name.
Registry<TransformOp>& transform_ops();

// Raises UsageError unless `range` is [smallest, largest]; `op` and `key` are names for the error.
void check_range(const char* op, const char* key, const std::vector<double>& range);

}  // namespace sparsight
