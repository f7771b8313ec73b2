// A 3x3 or 1x1 convolution without bias (a normalisation follows it), named and shaped as torch.nn.Conv2d.
#pragma once

#include <torch/nn/pimpl.h>

#include "sparsight/nn/init.h"

namespace sparsight {

struct ConvOptions {
  int64_t in = 0, out = 0;  // channels
  int64_t kernel = 3;       // odd; padded by kernel / 2
  int64_t stride = 1;
};

class ConvImpl : public torch::nn::Module, public Initialized {
 public:
  explicit ConvImpl(const ConvOptions& options);
  at::Tensor forward(const at::Tensor& x);             // [B,in,H,W] -> [B,out,ceil(H/stride),ceil(W/stride)]
  void initialize(const InitRandom& random) override;  // N(0, 2/fan_out), He et al. 2015

  at::Tensor weight;  // [out,in,kernel,kernel]

 private:
  ConvOptions options_;
};
TORCH_MODULE(Conv);

}  // namespace sparsight
