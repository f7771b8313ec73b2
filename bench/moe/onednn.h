// Experts on oneDNN's linear layers. Letters: sparsight/moe/axes.md.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/ops/expert_mlp.h"

namespace sparsight::bench {

// Each expert's matrices for onednn_product() (sparsight/nn/onednn_linear.h): [F,D] and [D,F].
struct OnednnExperts {
  std::vector<at::Tensor> w1, b1, w2, b2;
};
// rows: 0 for plain matrices, or the number of rows per expert to pack them for.
OnednnExperts onednn_experts(const ExpertMlpWeights& weights, int64_t rows);

}  // namespace sparsight::bench
