#include "bench/moe/onednn.h"

#include <ATen/ATen.h>

#include "sparsight/nn/onednn_linear.h"

namespace sparsight::bench {

OnednnExperts onednn_experts(const ExpertMlpWeights& weights, int64_t rows) {
  OnednnExperts experts;
  const auto matrix = [rows](const at::Tensor& w) {
    const at::Tensor plain = w.detach().t().contiguous();
    return rows > 0 ? onednn_packed(plain, rows) : plain;
  };
  for (int64_t e = 0; e < weights.w1.size(0); ++e) {
    experts.w1.push_back(matrix(weights.w1[e]));
    experts.b1.push_back(weights.b1[e].detach());
    experts.w2.push_back(matrix(weights.w2[e]));
    experts.b2.push_back(weights.b2[e].detach());
  }
  return experts;
}

}  // namespace sparsight::bench
