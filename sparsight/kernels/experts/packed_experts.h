// Expert MLPs packed for inference: the weights in the order in which the kernels of the active level read them
// (kernels/pack/packed_layout.h), in fp32, bf16 or int8, and the forward pass. Letters: moe/axes.md.
#pragma once

#include <memory>
#include <vector>

#include "sparsight/kernels/experts/expert_mlp.h"
#include "sparsight/kernels/memory/arena.h"

namespace sparsight::cpu {

class PackedExperts {
 public:
  // w1: [E,D,F], w2: [E,F,D]; b1: [E,F], b2: [E,D], or null. All are copied.
  PackedExperts(Threads& threads, const MlpShape& shape, const float* w1, const float* b1, const float* w2,
                const float* b2, WeightType type);

  // The same weights in fp32 as they are. Only biases are copied: w1 and w2 belong to `owner`, and must not change.
  PackedExperts(const MlpShape& shape, const float* w1, const float* b1, const float* w2, const float* b2,
                std::shared_ptr<const void> owner);

  // out [N,D] = residual + the gate-weighted sum of each token's experts. residual: [N,D], or null.
  void run(Threads& threads, const ExpertRowNumbers& rows, const float* tokens, Activation activation,
           const float* residual, float* out) const;

  const MlpShape& shape() const { return shape_; }
  WeightType type() const { return type_; }
  int64_t bytes() const;

 private:
  bool in_tiles() const { return layout_.panel == kTilePanelColumns; }
  StoredExperts stored(int64_t rows) const;

  MlpShape shape_;
  WeightType type_;
  PackedLayout layout_ = {};           // of panels_
  ArenaArray panels_;                  // or:
  std::shared_ptr<const void> owner_;  // of plain matrices, which are the fastest for fp32 on AMX
  const float *w1_ = nullptr, *w2_ = nullptr;
  std::vector<float> b1_, b2_;          // empty without
  std::vector<float> scale1_, scale2_;  // of int8: [E,F], [E,D]
};

}  // namespace sparsight::cpu
