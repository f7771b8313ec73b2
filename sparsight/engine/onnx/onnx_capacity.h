// Expert capacity in an ONNX graph: what apply_capacity() of engine/capacity.h does, for any number of images. Images
// are numbered from 0 in each batch. Letters: moe/axes.md; T tokens of the batch.
#pragma once

#include "sparsight/engine/capacity.h"
#include "sparsight/engine/onnx/onnx_routing.h"

namespace sparsight::engine {

// Sets gates as the setting `renormalize` says; returns which choices are kept, [N,S,k], or "" without a limit.
OnnxName apply_capacity(OnnxGraph& graph, const CapacityOptions& options, double factor, const OnnxTokens& tokens,
                        OnnxRouting& routing);

}  // namespace sparsight::engine
