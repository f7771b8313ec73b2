// Activation checkpointing: activations are recomputed in the backward pass instead of being kept (Shazeer et al. 2017,
// appendix D, for the hidden layers of experts; Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").
#pragma once

#include <functional>
#include <vector>

#include <torch/nn/module.h>

namespace sparsight {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// f(inputs), of which autograd keeps only `inputs`: the backward pass runs f again, under the autocast of the forward
// pass. f may read the parameters of `owner` and must be deterministic. Gradients reach inputs and parameters; there is
// no second derivative (raises Error).
at::Tensor recomputed(const torch::nn::Module& owner, const std::vector<at::Tensor>& inputs, const TensorFunction& f);

}  // namespace sparsight
