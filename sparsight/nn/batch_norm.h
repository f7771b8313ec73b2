// Batch normalisation of feature maps. With batch statistics (ForwardMode::batch_statistics) a channel's mean and
// variance are those of the whole batch, so an image's output depends on the rest of its batch. Without, the running
// averages are used and not updated.
//
// Differs from the paper: its code's running averages (Keras) begin at mean 0 and variance 1. These begin with the
// first batch: an exponential average without the share of its start (Kingma & Ba 2015, "Adam", section 3). Behind
// gates of 1/64, where variances are 3e-5, that share would outweigh the batches for a thousand steps: 0.99^400 is
// 0.018. `debias` false: as Keras.
#pragma once

#include <torch/nn/pimpl.h>

#include <vector>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/nn/init.h"

namespace sparsight {

// epsilon and momentum of Keras, which the wide residual networks of pMoE were trained with. momentum: fraction of the
// running average kept at each batch (torch's is 1 - momentum).
struct BatchNormOptions {
  int64_t channels = 0;
  double epsilon = 1e-3;
  double momentum = 0.99;
  bool debias = true;
};

// The tensors of one batch norm, each [C]; batches: [] int64, how many batches the running averages have seen.
struct BatchNormTensors {
  at::Tensor weight, bias, running_mean, running_var, batches;
};

// The fraction of the running averages to keep at the next batch after `batches`: momentum (1 - momentum^batches) / (1
// - momentum^(batches + 1)), which makes them the mean of all batches so far, weighted with momentum^age; 0 at the
// first. With a momentum of 1 it is their plain mean. Without `debias`: momentum.
double kept_fraction(const BatchNormOptions& options, int64_t batches);

// x: [B,C,...] of any floating type; computed in fp32 at least. With batch statistics the running averages are updated
// in place, with the unbiased variance, as torch and TensorFlow's fused kernel do. Returns x's shape and type.
at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& norm, const BatchNormOptions& options,
                      bool batch_statistics);

// The statistics of a batch, for the running averages of a norm: [C] each; variance: unbiased.
struct BatchMoments {
  BatchNormTensors norm;
  BatchNormOptions options;
  at::Tensor mean, variance;

  void update_averages() const;  // in place
};

// While one is there, norms of this thread do not update their running averages: the moments of their batches are
// collected, in the order of passes, for the caller, who knows which batches of other ranks come in between.
class CollectedMoments {
 public:
  CollectedMoments();
  ~CollectedMoments();
  CollectedMoments(const CollectedMoments&) = delete;
  CollectedMoments& operator=(const CollectedMoments&) = delete;
  std::vector<BatchMoments> moments;

 private:
  CollectedMoments* before_;
};

// Per position of a map; the running averages count as weights to read.
Cost batch_norm_cost(int64_t channels);

// Named as in torch.nn.BatchNorm2d.
class BatchNormImpl : public torch::nn::Module, public Initialized {
 public:
  explicit BatchNormImpl(const BatchNormOptions& options);
  at::Tensor forward(const at::Tensor& x, bool batch_statistics);  // [B,C,H,W] -> [B,C,H,W]
  void initialize(const InitRandom& random) override;              // ones and zeros; running mean 0, variance 1
  Cost cost() const;                                               // per position of the map
  const BatchNormOptions& options() const { return options_; }

  BatchNormTensors tensors;  // parameters "weight" and "bias", buffers "running_mean", "running_var" and
                             // "num_batches_tracked"

 private:
  BatchNormOptions options_;
};
TORCH_MODULE(BatchNorm);

// The norm of torchvision's networks: PyTorch's epsilon 1e-5 and momentum 0.1.
BatchNorm torchvision_norm(int64_t channels);

}  // namespace sparsight
