// Batch normalisation of feature maps. With batch statistics (ForwardMode::batch_statistics) a channel's mean and
// variance are those of the whole batch, so an image's output depends on the rest of its batch. Without, the running
// averages are used and not updated.
#pragma once

#include <torch/nn/pimpl.h>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/nn/init.h"

namespace sparsight {

// Defaults of Keras, which the wide residual networks of pMoE were trained with. momentum: fraction of the
// running average kept at each batch (torch's is 1 - momentum).
struct BatchNormOptions {
  int64_t channels = 0;
  double epsilon = 1e-3;
  double momentum = 0.99;
};

// The tensors of one batch norm, each [C].
struct BatchNormTensors {
  at::Tensor weight, bias, running_mean, running_var;
};

// x: [B,C,...] of any floating type; computed in fp32 at least. With batch statistics the running averages are updated
// in place, with the unbiased variance, as torch and TensorFlow's fused kernel do. Returns x's shape and type.
at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& norm, const BatchNormOptions& options,
                      bool batch_statistics);

// Per position of a map; the running averages count as weights to read.
Cost batch_norm_cost(int64_t channels);

// Named as in torch.nn.BatchNorm2d, without num_batches_tracked.
class BatchNormImpl : public torch::nn::Module, public Initialized {
 public:
  explicit BatchNormImpl(const BatchNormOptions& options);
  at::Tensor forward(const at::Tensor& x, bool batch_statistics);  // [B,C,H,W] -> [B,C,H,W]
  void initialize(const InitRandom& random) override;              // ones and zeros; running mean 0, variance 1
  Cost cost() const;                                               // per position of the map

  BatchNormTensors tensors;  // parameters "weight" and "bias", buffers "running_mean" and "running_var"

 private:
  BatchNormOptions options_;
};
TORCH_MODULE(BatchNorm);

}  // namespace sparsight
