// Expert MLPs packed for inference: the weights in the order in which the kernels of the active level read them
// (kernels/pack/packed_layout.h), in fp32, bf16 or int8, and the forward pass. Letters: moe/axes.md.
#pragma once

#include <memory>
#include <vector>

#include "sparsight/kernels/experts/expert_mlp.h"
#include "sparsight/kernels/memory/arena.h"
#include "sparsight/kernels/pack/stored_matrix.h"

namespace sparsight::cpu {

// The weights of one expert as files hold them.
struct MlpView {
  MatrixView w1, w2;                         // [D,F], [F,D], of one type
  const float *b1 = nullptr, *b2 = nullptr;  // [F], [D], or null
};
struct StoredMlp {
  StoredMatrix w1, w2;
  std::vector<float> b1, b2;  // empty without
};

class PackedExperts {
 public:
  PackedExperts() = default;
  // Memory for E experts with or without biases, which set() fills.
  PackedExperts(const MlpShape& shape, WeightType type, bool has_b1, bool has_b2)
      : PackedExperts(shape, type, has_b1, has_b2, shared_array(memory_bytes(shape, type))) {}
  // The same with the matrices in this memory, of memory_bytes() and aligned to 64. It may have them already.
  PackedExperts(const MlpShape& shape, WeightType type, bool has_b1, bool has_b2, std::shared_ptr<const void> memory);
  static int64_t memory_bytes(const MlpShape& shape, WeightType type);
  // w1: [E,D,F], w2: [E,F,D]; b1: [E,F], b2: [E,D], or null. All are copied.
  PackedExperts(Threads& threads, const MlpShape& shape, const float* w1, const float* b1, const float* w2,
                const float* b2, WeightType type);

  // The same weights in fp32 as they are. Only biases are copied: w1 and w2 belong to `owner`, and must not change.
  PackedExperts(const MlpShape& shape, const float* w1, const float* b1, const float* w2, const float* b2,
                std::shared_ptr<const void> owner);

  // From matrices of this type; without a bias that these experts have, it is zeros. Without numbers of the matrices
  // (null), those that are there stay.
  void set(Threads& threads, int64_t expert, const MlpView& weights);
  // What the expert was made of, exactly.
  StoredMlp stored(Threads& threads, int64_t expert) const;

  // out [N,D] = residual + the gate-weighted sum of each token's experts. residual: [N,D], or null.
  void run(Threads& threads, const ExpertRowNumbers& rows, const float* tokens, Activation activation,
           const float* residual, float* out) const;
  // The same, with the same bits, where each expert is in a PackedExperts of its own: [E], those without rows null.
  static void run_each(Threads& threads, const MlpShape& shape, const PackedExperts* const* each,
                       const ExpertRowNumbers& rows, const float* tokens, Activation activation, const float* residual,
                       float* out);

  const MlpShape& shape() const { return shape_; }
  WeightType type() const { return type_; }
  bool has_b1() const { return !b1_.empty(); }
  bool has_b2() const { return !b2_.empty(); }
  int64_t bytes() const;

 private:
  bool is_plain() const { return layout_.panel == 0; }
  // The expert's matrices of plain ones.
  const float* plain_w1(int64_t expert) const { return w1_ + expert * shape_.width * shape_.hidden; }
  const float* plain_w2(int64_t expert) const { return w2_ + expert * shape_.width * shape_.hidden; }
  // (What is only read is not written.)
  char* panels(int64_t expert) const {
    return static_cast<char*>(const_cast<void*>(memory_.get())) + expert * layout_.expert_bytes();
  }
  StoredExperts kernel_view(int64_t rows) const;

  MlpShape shape_;
  WeightType type_ = WeightType::fp32;
  PackedLayout layout_ = {};            // of panels; plain matrices, which are the fastest for fp32 on AMX, have none
  std::shared_ptr<const void> memory_;  // panels, or all w1 and then all w2, or nothing:
  std::shared_ptr<const void> owner_;   // of plain matrices elsewhere
  const float *w1_ = nullptr, *w2_ = nullptr;  // of plain matrices
  std::vector<float> b1_, b2_;                 // empty without
  std::vector<float> scale1_, scale2_;         // of int8: [E,F], [E,D]
};

}  // namespace sparsight::cpu
