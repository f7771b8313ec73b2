// The matrices of a layer as B of products with many rows: packed into panels once and read by all tasks, where each
// task would pack a plain B again. Same bits as with a plain B.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/kernels/memory/scratch.h"
#include "sparsight/kernels/pack/packed_copies.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

class PackedOperand {
 public:
  // Nothing is packed: tasks read plain matrices.
  PackedOperand() = default;
  // matrices: [E,k,n] of all experts, `offset`: [E+1], the rows that each is multiplied with. Packs the matrices for
  // which that is faster, or takes them from the copies in use (packed_copies.h); bf16: for products of bf16.
  PackedOperand(Threads& threads, const WeightView& matrices, const int64_t* offset, int64_t experts, bool bf16);

  // If the expert's matrix is packed, makes its part from (row, column) on the B of the product. `row` and `column` are
  // multiples of kBlock.
  void serve(Gemm& p, int64_t expert, int64_t row, int64_t column) const;

 private:
  std::pmr::vector<PackedMatrix> matrices_{scratch()};  // [E]: no matrix where the plain one is read; or empty
};

}  // namespace sparsight::cpu
