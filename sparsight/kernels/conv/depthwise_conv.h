// A depthwise convolution for inference: each channel has a kernel of its own, so there are no panels to pack. Maps are
// channels last. No torch types. Letters: B images, H x W of a map, C channels.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sparsight/kernels/conv/packed_conv.h"

namespace sparsight::cpu {

class DepthwiseConv {
 public:
  DepthwiseConv() = default;
  // weight: [C,1,K,K] as in torch, bias: [C]; both are copied, and stay fp32: they are few. `type` is only what type()
  // says, that of the convolutions around it.
  DepthwiseConv(const float* weight, const float* bias, int64_t channels, int64_t kernel, WeightType type);

  // weight: [K,K,C], bias: [C].
  DepthwiseConv(std::vector<float> weight, std::vector<float> bias)
      : weight_(std::move(weight)), bias_(std::move(bias)), zeros_(bias_.size()) {}

  const std::vector<float>& weight() const { return weight_; }  // [K,K,C]
  const std::vector<float>& bias() const { return bias_; }
  int64_t channels() const { return static_cast<int64_t>(bias_.size()); }  // 0 by default
  WeightType type() const { return type_; }
  int64_t bytes() const { return static_cast<int64_t>((weight_.size() + bias_.size()) * sizeof(float)); }

  // `maps` has no norm before it and no residual. Products with the zeros around a map are left out. The bits of an
  // element do not depend on the part that it is in.
  void run(const ConvMaps& maps, const ConvGeometry& geometry, const ConvPart& part) const;

 private:
  std::vector<float> weight_;        // [K,K,C]
  std::vector<float> bias_, zeros_;  // [C]
  WeightType type_ = WeightType::fp32;
};

}  // namespace sparsight::cpu
