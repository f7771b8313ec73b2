// Small networks that algorithms train beside the model, such as a discriminator: linear layers, by torch's operations,
// which can be differentiated twice. Letters: moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/random.h"
#include "sparsight/optim/optimizer.h"

namespace sparsight {

// Tensors that an algorithm trains; `prefix` goes before their names.
std::vector<OptimizedParameter> trained(const NamedTensors& tensors, const std::string& prefix);

struct LinearLayer {
  at::Tensor weight, bias;  // [O,I], [O]
  // U(-1/sqrt(I), 1/sqrt(I)), as torch.nn.Linear starts. random: its streams "<name>.weight" and "<name>.bias" are
  // used.
  LinearLayer(int64_t inputs, int64_t outputs, const StepRandom& random, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

// widths: of the input, of each hidden layer and of the output; ReLU between layers.
class MlpLayers {
 public:
  MlpLayers(const std::vector<int64_t>& widths, const StepRandom& random, const std::string& name);

  // dropout: of the hidden layers before their activation, with masks from the stream "<name>.dropout<i>".
  at::Tensor forward(const at::Tensor& x, double dropout, const StepRandom& random) const;
  at::Tensor forward(const at::Tensor& x) const { return forward(x, 0, {}); }
  // Applies no dropout, and leaky ReLU: leak x below 0.
  at::Tensor forward(const at::Tensor& x, double leak) const;

  NamedTensors tensors() const;  // "0.weight", "0.bias", "1.weight", ...

 private:
  std::string name_;
  std::vector<LinearLayer> layers_;
};

}  // namespace sparsight
