// The neon_dotprod level, chosen on Arm CPUs with FEAT_DotProd: int8 weights are multiplied four along the depth at a
// time. Everything else is neon's. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/gemm/panels_inl.h"
#include "sparsight/kernels/isa/aarch64.h"
#include "sparsight/kernels/isa/vectors_neon_inl.h"

namespace sparsight::cpu {
namespace {

// A number x of a row is s (256 h + l) with bytes h and l, as at the amx level (docs/kernels.md, "Packed tiles for
// AMX"), so that a dot product of four bytes takes four numbers of the row in two steps.
struct QuadVec : Vec {
  // Each has two sums per vector of C.
  static constexpr int panel_rows = 3;
  static constexpr int panel_vectors(int m) { return m == 1 ? 8 : 4; }

  // Quantises x [count] into groups of eight bytes: h of four numbers, then their l, with zeros after the last number.
  // Returns s.
  static float split_row(const float* x, int64_t count, int16_t* split) {
    constexpr float kMaxSplit = 127 * 256 + 127;
    const float scale = quantise_row<Vec>(x, count, split, kMaxSplit);
    for (int64_t l = count; l % lanes != 0; ++l) split[l] = 0;
    for (int64_t l = 0; l < count; l += lanes) {
      const int16x4_t whole = vld1_s16(split + l);
      const int16x8_t high = vcombine_s16(vrshr_n_s16(whole, 8), whole);  // of both the lower bytes are taken
      vst1_s16(split + l, vreinterpret_s16_s8(vmovn_s16(high)));
    }
    return scale;
  }

  template <int kMr, int kNv>
  static void run(const Tile& t);
  template <int kMr, int kNv>
  static constexpr TileFunction quads_tile = run<kMr, kNv>;
};

// kMr x (kNv vectors) elements of C. A panel has two rows of the depth together: pairs of two such rows are interleaved
// into groups of four.
template <int kMr, int kNv>
void QuadVec::run(const Tile& t) {
  int32x4_t high[kMr][kNv], low[kMr][kNv];
  TileOfC<Vec, kMr, kNv>::each([&](int i, int v) { high[i][v] = low[i][v] = vdupq_n_s32(0); });
  const int16_t* a = t.rounded;
  const int8_t* b = static_cast<const int8_t*>(t.b);
  constexpr int64_t kPair = 2 * kPanelColumns;
  // load_second(p): 16 bytes of the second pair of rows.
  const auto add = [&](const auto& load_second) __attribute__((always_inline)) {
    int8x16_t bv[kNv];
#pragma GCC unroll 32
    for (int v = 0; v < kNv; v += 2) {  // eight columns
      const int8_t* const from = b + v / one_panel<Vec>() * t.b_panel + v % one_panel<Vec>() * 2 * lanes;
      const int16x8_t first = vreinterpretq_s16_s8(vld1q_s8(from)), second = load_second(from + kPair);
      bv[v] = vreinterpretq_s8_s16(vzip1q_s16(first, second));
      bv[v + 1] = vreinterpretq_s8_s16(vzip2q_s16(first, second));
    }
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i) {
      const int8x8_t av = vreinterpret_s8_s16(vld1_s16(a + i * kBlock));
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) {
        high[i][v] = vdotq_lane_s32(high[i][v], bv[v], av, 0);
        low[i][v] = vdotq_lane_s32(low[i][v], bv[v], av, 1);
      }
    }
    a += lanes;
    b += 2 * kPair;
  };
  const int64_t pairs = (t.depth + 1) / 2;
  fetching_steps(
      t, pairs / 2, [&]() __attribute__((always_inline)) {
        add([](const int8_t* p) { return vreinterpretq_s16_s8(vld1q_s8(p)); });
      });
  if (pairs % 2 != 0) add([](const int8_t*) { return vdupq_n_s16(0); });
  end_integer_tile<Vec, kMr, kNv>(t, [&](int i, int v) { return vaddq_s32(vshlq_n_s32(high[i][v], 8), low[i][v]); });
}

void product(const Gemm& p, float* space) {
  if (p.m == 0 || p.n == 0 || !p.b_panels || p.b_type != WeightType::int8) return kernels_neon().product(p, space);
  in_row_parts(p, [space](const Gemm& part) { gemm_panels<QuadVec, Int8Quads>(part, space); });
}

}  // namespace

const Kernels& kernels_neon_dotprod() {
  static const Kernels table = [] {
    Kernels kernels = kernels_neon();
    kernels.product = product;
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
