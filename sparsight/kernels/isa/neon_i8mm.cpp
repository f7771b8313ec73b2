// The neon_i8mm level, chosen on Arm CPUs with FEAT_I8MM: rows are multiplied two at a time with int8 weights of two
// columns, eight along the depth (gemm/neon_matrix_inl.h). Everything else is neon_bf16's. Compiled with its own flags:
// see kernels/sources.cmake.
#include "sparsight/kernels/gemm/neon_matrix_inl.h"
#include "sparsight/kernels/gemm/panels_inl.h"
#include "sparsight/kernels/isa/aarch64.h"
#include "sparsight/kernels/isa/vectors_neon_dotprod_inl.h"

namespace sparsight::cpu {
namespace {

struct Int8Numbers {
  static constexpr WeightType type = WeightType::int8;
  using Sum = int32x4_t;
  static Sum add(Sum sums, uint32x4_t rows, uint32x4_t columns) {
    return vmmlaq_s32(sums, vreinterpretq_s8_u32(rows), vreinterpretq_s8_u32(columns));
  }
  static uint32x4_t nothing() { return vdupq_n_u32(0); }
};

// kMr x (kNv vectors) elements of C; a row alone takes dot products, which have the same sums.
template <int kMr, int kNv>
void run_block_tile(const Tile& t) {
  if constexpr (kMr == 1) {
    run_integer_tile<QuadVec, kMr, kNv>(t);
  } else {
    int32x4_t sum[(kMr + 1) / 2][2 * kNv] = {};
    multiply_blocks<Int8Numbers, kMr, kNv>(t, sum);
    const TileOfC<Vec, kMr, kNv> c(t);
    float32x4_t acc[kMr][kNv];
    c.begin(acc);
    c.each([&](int i, int v) {
      const int32x4_t of_row = halves(i % 2, sum[i / 2][2 * v], sum[i / 2][2 * v + 1]);
      acc[i][v] = scaled<Vec>(of_row, Vec::set1(t.row_scale[i]), c.load(t.scale, v), acc[i][v]);
    });
    c.end(acc);
  }
}

struct BlockVec : QuadVec {
  static constexpr int panel_row_unit = 2;
  // Up to 24 registers of sums where there are two rows or more.
  static constexpr int panel_vectors(int m) { return m == 1 ? 16 : m == 2 ? 8 : 4; }
  template <int kMr, int kNv>
  static constexpr TileFunction integer_tile = run_block_tile<kMr, kNv>;
};

void product(const Gemm& p, float* space) {
  if (p.m == 0 || p.n == 0 || !p.b_panels || p.b_type != WeightType::int8) return kernels_neon_bf16().product(p, space);
  in_row_parts(p, [space](const Gemm& part) { gemm_panels<BlockVec, int8_t>(part, space); });
}

}  // namespace

const Kernels& kernels_neon_i8mm() {
  static const Kernels table = [] {
    Kernels kernels = kernels_neon_bf16();
    kernels.product = product;
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
