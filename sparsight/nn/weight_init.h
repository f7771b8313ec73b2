// The distribution of a layer's initial weights as settings, under the names of timm and PyTorch.
#pragma once

#include <cstdint>
#include <string>

#include "sparsight/core/options.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct WeightInit {
  std::string init = "normal";
  double init_std = kVitStd;
  double init_scale = 1;
  void declare(OptionSet& set);
};

// Inputs and outputs of a weight; for a convolution times the size of its kernel.
struct Fans {
  int64_t in = 0, out = 0;
};

// Weight and bias in place. The bias, which may be undefined, is 0 except for "torch_linear".
//   normal          N(0, init_std²)
//   trunc_normal    the same, truncated at ± 2 init_std (timm's trunc_normal_tf_; its trunc_normal_ truncates at ± 2)
//   fan_in          N(0, init_scale / fan_in): variance scaling; timm's lecun_normal_ without truncation. With
//                   init_scale = 0.1 that of Switch Transformers (Fedus et al. 2022, section 2.4)
//   xavier_uniform  U(± sqrt(6 / (fan_in + fan_out))) (nn/glorot.h)
//   torch_linear    U(± 1 / sqrt(fan_in)), the bias too: the default of PyTorch's nn.Linear
void init_weights(at::Tensor& weight, at::Tensor& bias, const Fans& fans, const WeightInit& options,
                  const RandomStream& of_weight, const RandomStream& of_bias);

}  // namespace sparsight
