// A square convolution, with the parameters of torch.nn.Conv2d. As many groups as channels: depthwise,
// each channel has a kernel of its own.
#pragma once

#include <torch/nn/pimpl.h>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/nn/init.h"

namespace sparsight {

// centred: kernel / 2 zeros on each edge. same: TensorFlow's "same", the fewest zeros that give ceil(H/stride) outputs;
// if their number is odd, the bottom and right edges get one more. A 3x3 kernel with stride 2 on an even side has none
// at the top and one at the bottom.
enum class ConvPadding { centred, same };
// he_normal: N(0, 2/fan_out), He et al. 2015, where fan_out is as PyTorch's: out * kernel² for any number of groups.
// glorot_uniform: nn/glorot.h. torch_default: U(± 1 / sqrt(fan_in)), the bias too, as PyTorch's nn.Conv2d. dirac: the
// same, where the first outputs are the inputs (Zagoruyko & Komodakis 2017, "DiracNets", arXiv:1706.00388). vit_normal:
// N(0, 0.02²), as the linear layers of vision transformers and all of ConvNeXt's.
enum class ConvInit { he_normal, glorot_uniform, torch_default, dirac, vit_normal };

struct ConvOptions {
  int64_t in = 0, out = 0;  // channels
  int64_t kernel = 3;       // odd with centred padding
  int64_t stride = 1;
  bool bias = false;  // usually followed by a normalisation
  ConvPadding padding = ConvPadding::centred;
  ConvInit init = ConvInit::he_normal;
  int64_t groups = 1;  // a divisor of `in` and of `out`
};

class ConvImpl : public torch::nn::Module, public Initialized {
 public:
  explicit ConvImpl(const ConvOptions& options);
  at::Tensor forward(const at::Tensor& x);             // [B,in,H,W] -> [B,out,ceil(H/stride),ceil(W/stride)]
  void initialize(const InitRandom& random) override;  // as options.init says; else bias 0
  MapSize output(MapSize in) const;                    // output size for an input of size `in`
  Cost cost(MapSize in) const;                         // per image
  const ConvOptions& options() const { return options_; }

  at::Tensor weight;  // [out,in/groups,kernel,kernel]
  at::Tensor bias;    // [out] or undefined

 private:
  ConvOptions options_;
};
TORCH_MODULE(Conv);

}  // namespace sparsight
