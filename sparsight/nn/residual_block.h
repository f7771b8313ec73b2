// A residual block of two 3x3 convolutions with group norm.
#pragma once

#include <string>
#include <vector>

#include "sparsight/cost/part_cost.h"
#include "sparsight/nn/freeze_convs.h"

namespace sparsight {

struct ResidualBlockOptions {
  int64_t in = 0, out = 0;  // channels
  int64_t stride = 1;
};

// relu(shortcut(x) + norm2(conv2(relu(norm1(conv1(x))))))
class ResidualBlockImpl : public torch::nn::Module {
 public:
  explicit ResidualBlockImpl(const ResidualBlockOptions& options);
  at::Tensor forward(const at::Tensor& x);  // [B,in,H,W] -> [B,out,ceil(H/stride),ceil(W/stride)]
  // Per image. map: size of the input, set to that of the output.
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const;
  void freeze(WeightType type);  // see ImageModel::freeze

 private:
  Conv conv1_;
  GroupNorm norm1_;
  Conv conv2_;
  GroupNorm norm2_;
  Conv shortcut_{nullptr};  // 1x1, where the shape changes
  ConvsCopy frozen_;
};
TORCH_MODULE(ResidualBlock);

}  // namespace sparsight
