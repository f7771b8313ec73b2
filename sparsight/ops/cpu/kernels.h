// The table of kernels that each instruction-set level fills in. Plain pointers, no torch: the files that are compiled
// with special flags must not instantiate anything that other files could share.
#pragma once

#include <cstdint>

#include "sparsight/ops/kernel_types.h"

namespace sparsight::cpu {

// Activations that cover columns lie in blocks of kBlock columns: element (row, column) of a buffer with `rows` rows is
// at (column / kBlock) * rows * kBlockLd + row * kBlockLd + column % kBlock. The padding keeps the rows of one block
// stride in the cache, and makes their distance a constant of the kernels.
constexpr int64_t kBlock = 384;
constexpr int64_t kBlockLd = 400;
inline int64_t blocks_of(int64_t columns) { return (columns + kBlock - 1) / kBlock; }

// B may lie in panels of so many columns, one after the other, each row after row: B(l,j) is element
// (j / kPanelColumns * k + l) * kPanelColumns + j % kPanelColumns; of int8, with k rounded up to even, element
// (j / kPanelColumns * k + l / 2 * 2) * kPanelColumns + j % kPanelColumns * 2 + l % 2. Padding is zeros.
constexpr int64_t kPanelColumns = 16;

constexpr int64_t bytes_of(WeightType type) { return type == WeightType::fp32 ? 4 : type == WeightType::bf16 ? 2 : 1; }

// C [m,n] = A [m,k] B [k,n] (+ bias, + C). Each element is one chain of multiply-adds over k in increasing order,
// whatever the sizes of blocks: the bits do not depend on how the work is cut. (With B transposed and at the AMX level
// that holds as long as M stays small: kernels_small_m_inl.h, kernels_amx_fp32.cpp.)
struct Gemm {
  int64_t m = 0, n = 0, k = 0;

  const float* a = nullptr;
  int64_t a_ld =
      0;  // a_transposed: A(i,l) = a[l * a_ld + i]; else blocked: A(i,l) = a[l/kBlock*a_block + i*kBlockLd + l%kBlock]
  int64_t a_block = 0;
  bool a_transposed = false;

  const void* b = nullptr;  // B(l,j) = b[l * b_ld + j], or b[j * b_ld + l] if transposed
  int64_t b_ld = 0;
  bool b_transposed = false;

  bool b_panels = false;                 // instead: B lies in panels, b_ld is not used
  WeightType b_type = WeightType::fp32;  // of panels
  const float* b_scale = nullptr;        // [n], of panels: column j of B is b_scale[j] times what is stored

  float* c =
      nullptr;  // C(i,j) = c[j/kBlock*c_block + i*c_ld + j%kBlock]; for rows that lie in one piece c_block = kBlock
  int64_t c_ld = 0, c_block = kBlock;
  bool accumulate = false;      // start from C
  bool stream = false;          // store past the caches
  const float* bias = nullptr;  // [n]: start from it

  bool activates = false;  // the finished elements
  Activation activation = Activation::gelu;
  float* pre_activation = nullptr;  // receives what the activation saw: pre_activation[i * pre_activation_ld + j]
  int64_t pre_activation_ld = 0;

  // A matrix in memory that is read after this product (B of the next one, or its rows before they are blocks), to be
  // fetched early; may be null. With B in panels it is panels too, as deep as those of B.
  const void* next = nullptr;
  int64_t next_rows = 0, next_columns = 0, next_ld = 0;
  // Places in B at which it is fetched in turn: what processors with AMX take from memory faster, and others slower.
  int64_t streams = 1;
};

struct Kernels {
  void (*product)(const Gemm& p, float* panel);
  int64_t panel_floats;  // size of `panel`, 64-byte aligned
  int64_t task_rows;     // that one thread multiplies at a time: with their hidden block they stay in a 2 MB cache
  // out[c] = act(x[c]), slope[c] = act'(x[c])
  void (*activate)(Activation activation, const float* x, float* out, float* slope, int64_t count);
  // Per row: dot = <active, grad>; grad = gate * grad * slope(pre_activation); active = gate * act(pre_activation). One
  // row of one block.
  float (*activate_backward)(Activation activation, const float* pre_activation, float gate, float* grad, float* active,
                             int64_t count);
  void (*scaled_sum)(const float* const* rows, const float* gates, int64_t count, float* out, int64_t width);
  float (*dot)(const float* a, const float* b, int64_t count);
  void (*add_scaled)(float factor, const float* x, float* y, int64_t count);  // y += factor * x
};

const Kernels& kernels_baseline();
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
const Kernels& kernels_amx();
const Kernels& kernels();  // of the active level

}  // namespace sparsight::cpu
