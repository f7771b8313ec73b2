// The table of kernels, one per instruction-set level (which variant runs when: docs/kernels.md). Raw pointers, no
// torch headers: a file compiled with the flags of one level must not instantiate templates that other files share.
#pragma once

#include <cstdint>

#include "sparsight/kernels/types.h"

namespace sparsight::cpu {

// Rows of activations are stored in blocks of kBlock columns (diagram: docs/kernels.md, "Rows of tokens: blocks"):
// element (row, column) of a buffer with `rows` rows is at
// (column / kBlock) * rows * kBlockLd + row * kBlockLd + column % kBlock. The padding keeps the rows of one block out
// of each other's cache sets, and makes their stride a constant of the kernels.
constexpr int64_t kBlock = 384;
constexpr int64_t kBlockLd = 400;
inline int64_t count_blocks(int64_t columns) { return (columns + kBlock - 1) / kBlock; }

// Packed weights in panels (diagram: docs/kernels.md, "Packed weights") have this many columns per panel: panel after
// panel, each with g = 1, 2 (bf16) or 4 (int8) rows together: with k rounded up to a multiple of g, B(l,j) is element
// (j / kPanelColumns * k + l / g * g) * kPanelColumns + j % kPanelColumns * g + l % g. Padding is zeros.
constexpr int64_t kPanelColumns = 16;
constexpr int64_t rows_together(WeightType type) {
  return type == WeightType::fp32 ? 1 : type == WeightType::bf16 ? 2 : 4;
}

constexpr int64_t element_bytes(WeightType type) {
  return type == WeightType::fp32 ? 4 : type == WeightType::bf16 ? 2 : 1;
}

// A GEMM on one thread: C [m,n] = A [m,k] B [k,n] (+ bias, + C). Each element is one chain of multiply-adds over
// increasing k, whatever the block sizes, so the bits do not depend on how the work is split. (Two kernels sum in an
// order of their own, so there the bits change where another m selects another kernel: small-M with B transposed,
// gemm/small_m_inl.h, and bf16x3, gemm/amx_fp32.cpp.)
struct Gemm {
  int64_t m = 0, n = 0, k = 0;

  // A(i,l) = a[l * a_ld + i] if a_transposed; else in blocks: a[l / kBlock * a_block + i * kBlockLd + l % kBlock]
  const float* a = nullptr;
  int64_t a_ld = 0;
  int64_t a_block = 0;
  bool a_transposed = false;

  const void* b = nullptr;  // B(l,j) = b[l * b_ld + j], or b[j * b_ld + l] if transposed
  int64_t b_ld = 0;
  bool b_transposed = false;

  bool b_panels = false;                 // B is packed in panels, and b_ld is not used
  int64_t b_panel_rows = 0;              // rows of the panels, if more than k: B is the first k of them
  WeightType b_type = WeightType::fp32;  // of the panels; a plain B is fp32
  bool bf16_products = false;            // with a plain B: round A and B to bf16, if the level multiplies bf16
  const float* b_scale = nullptr;        // [n], for int8 panels: column j of B is b_scale[j] times the stored numbers

  // C(i,j) = c[j / kBlock * c_block + i * c_ld + j % kBlock]; row-major if c_block = kBlock
  float* c = nullptr;
  int64_t c_ld = 0, c_block = kBlock;
  bool accumulate = false;      // start from C
  bool stream = false;          // streaming (non-temporal) stores
  const float* bias = nullptr;  // [n]: start from it

  bool activates = false;  // apply the activation to the finished elements
  Activation activation = Activation::gelu;
  float* pre_activation = nullptr;  // receives the input of the activation: pre_activation[i * pre_activation_ld + j]
  int64_t pre_activation_ld = 0;
  bool keeps_slope = false;  // the slope of the activation instead of its input

  // Prefetch target: the matrix that is read after this product; may be null. With B in panels it is in panels too, as
  // deep as those of B.
  const void* prefetch = nullptr;
  int64_t prefetch_rows = 0, prefetch_columns = 0, prefetch_ld = 0;
  bool prefetch_whole = false;  // all of it, plain, instead of as much as the first panel of the next B
  void prefetch_all(const float* rows, int64_t count, int64_t columns, int64_t ld) {
    prefetch = rows;
    prefetch_rows = count, prefetch_columns = columns, prefetch_ld = ld;
    prefetch_whole = true;
  }
  // Number of positions in B that are prefetched in turn: several are faster on CPUs with AMX, and slower on others.
  int64_t streams = 1;
};

// A plain matrix [depth,columns] to be packed into panels of fp32 or bf16 (bf16: at levels that multiply it).
struct PanelPacking {
  const float* matrix;  // (l,j) is at l * ld + j, or at j * ld + l if transposed
  int64_t ld;
  bool transposed;
  int64_t depth, columns;
  WeightType type;
  void* panels;
};
struct AttentionForward;  // attention_task.h
struct AttentionBackward;
struct ConvProduct;  // conv_task.h
struct ScaleShift;
// elementwise/adam_step.h with everything rounded to fp32 that its elements are multiplied by or added to.
struct AdamFactors {
  float gradient, coupled_decay;  // G <- gradient G + coupled_decay W
  float kept;                     // W <- kept W
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float root_factor, eps;  // denominator: root_factor sqrt(V) + eps
  float minus_step_size;   // W <- W + minus_step_size M / denominator
  float average_share;
};
// Elements of a parameter and its state, in any order.
struct AdamArrays {
  float* value;
  const float* gradient;
  float *exp_avg, *exp_avg_sq, *average;  // average: may be null
  int64_t count;
};

// Blocks of the generator of core/random.h, four words each: bit 4 b + i of `bits` is 1 where word i of block
// first_block + b is below the limit. `blocks` is even; blocks / 2 bytes are written.
struct RandomBits {
  uint64_t key, counter_high, first_block;
  int64_t blocks;
  uint64_t limit;
  uint8_t* bits;
};

// Mean of a row, and 1 / sqrt(variance + epsilon).
struct RowMoments {
  float mean, scale;
};
// A row that layer norm was applied to.
struct LayerNormRow {
  const float *x, *grad, *weight;  // [width]; grad: of the result
  const float* residual;           // [width], is added to the gradient of x; or null
  RowMoments moments;
  int64_t width;
};

// A row of logits with its target (ops/softmax_cross_entropy.h).
struct CrossEntropyRow {
  const float *logits, *targets;  // [classes]; targets: null for the share `own` at `label`, plus `shared` everywhere
  int64_t label;
  float own, shared;
  int64_t classes;
};
// Max of the logits, and sum(targets) / sum(exp(logits - max)).
struct SoftmaxMoments {
  float max, scale;
};

struct Kernels {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KERNEL(entry, implementation, result, parameters) result(*entry) parameters;
#include "sparsight/kernels/kernels.inc"
#undef KERNEL
  int64_t panel_floats;  // size of the scratch of a product, 64-byte aligned
  int64_t task_rows;     // rows of one task: with their hidden block they stay in a 2 MB cache
  // Rows of a task of the products of dense layers: fewer take sums in an order of their own, so that the bits would
  // depend on the number of threads.
  int64_t fewest_rows;
  int64_t vector_bytes;
  bool multiplies_bf16;  // Gemm::bf16_products, and bf16 weights with rows rounded to bf16
  bool has_tiles;        // packed weights in tiles of bf16, and plain ones in fp32 (pack/packed_layout.h)
};

// Those that only training needs: a table of their own, which a program that does not train is linked without.
struct TrainingKernels {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KERNEL(entry, implementation, result, parameters) result(*entry) parameters;
#include "sparsight/kernels/training_kernels.inc"
#undef KERNEL
};

// The level that every architecture has:
const Kernels& kernels_baseline();
const TrainingKernels& training_kernels_baseline();
// The active level:
const Kernels& kernels();
const TrainingKernels& training_kernels();

}  // namespace sparsight::cpu
