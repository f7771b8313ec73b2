// The bf16 GEMMs of the amx level outside packed experts (isa/amx.cpp): rows of A are rounded to bf16 once per
// block of the depth, and are read by the tile registers as they lie there (amx_tiles_inl.h). Compiled with its own
// flags: see kernels/sources.cmake.
#include "sparsight/kernels/gemm/amx_tiles_inl.h"

#include "sparsight/kernels/gemm/bf16_inl.h"
#include "sparsight/kernels/isa/vectors_avx512_bf16_inl.h"

namespace sparsight::cpu {
namespace {

// Two by two tiles of C, or fewer: rows 0 to 15 and 16 to 31, columns 0 to 15 and 16 to 31.
template <bool kTall, bool kWide>
class TilesOfC {
  using Sums = SumTiles<kTall, kWide>;

 public:
  TilesOfC(const Tile& t, int rows)
      : t_(t),
        rows_(rows),
        whole_(rows == (kTall ? 2 : 1) * kTileRows && t.columns >= (kWide ? 2 : 1) * kTileColumns) {}

  void begin() {
    if (whole_ && !t_.stream) request();
    if (t_.start == Start::zero) return Sums::zero();
    if (t_.start == Start::bias) {
      copy_row(t_.bias, edge_);
      Sums::load(edge_, 0, 0);
    } else if (whole_) {
      Sums::load(t_.c, t_.c_ld, kTileRows * t_.c_ld);
    } else {
      for (int64_t i = 0; i < rows_; ++i) copy_row(t_.c + i * t_.c_ld, edge_ + i * kAcross);
      Sums::load(edge_, kAcross, kTileRows * kAcross);
    }
  }

  void end() {
    if (whole_ && !t_.stream) return Sums::store(t_.c, t_.c_ld);
    Sums::store(edge_, kAcross);
    for (int64_t i = 0; i < rows_; ++i)
      for (int first = 0; first < t_.columns; first += kTileColumns) {
        const __m512 sums = _mm512_load_ps(edge_ + i * kAcross + first);
        float* const to = t_.c + i * t_.c_ld + first;
        if (t_.columns - first < kTileColumns)
          Vec::store_part(to, sums, static_cast<int>(t_.columns) - first);
        else if (t_.stream)
          Vec::stream(to, sums);
        else
          Vec::store(to, sums);
      }
  }

 private:
  // Requests the lines of C, to be written when the depth has been summed.
  void request() const {
    for (int i = 0; i < rows_; ++i)
      for (int first = 0; first < t_.columns; first += kTileColumns) __builtin_prefetch(t_.c + i * t_.c_ld + first, 1);
  }

  // Columns that C lacks become zeros.
  void copy_row(const float* from, float* to) const {
    for (int first = 0; first < kAcross; first += kTileColumns) {
      const int64_t left = max(0, t_.columns - first);
      Vec::store(to + first, load_some<Vec>(from + first, static_cast<int>(min(kTileColumns, left))));
    }
  }

  const Tile& t_;
  int rows_;
  bool whole_;
  alignas(64) float edge_[2 * kTileRows * kAcross];
};

template <bool kTall, bool kWide>
void run_tiles(const Tile& t, int rows) {
  TilesOfC<kTall, kWide> c(t, rows);
  compiler_barrier();
  c.begin();
  multiply_tiles<Bf16Numbers, kTall, kWide>(t);
  c.end();
}

struct AmxVec : Bf16Vec {
  static constexpr int panel_rows = 2 * kTileRows;
  static constexpr int panel_row_unit = kTileRows;  // whole tiles are stored straight to C
  static constexpr int panel_vectors(int) { return 2; }

  template <int kMr, int kNv>
  static void run_rows(const Tile& t) {
    run_tiles<(kMr > kTileRows), (kNv > 1)>(t, kMr);
  }
  template <int kMr, int kNv>
  static constexpr TileFunction bf16_tile = run_rows<kMr, kNv>;
};

// Tiles read whole groups of rows, past those that there are.
constexpr int64_t kRowsRead = kRoundedRows + AmxVec::panel_rows;

}  // namespace

const int64_t kAmxBf16Floats = max(rounded_floats(kRowsRead), bf16_floats<AmxVec>());

void amx_bf16_product(const Gemm& p, float* space) {
  if (p.m == 0 || p.n == 0) return;
  const TileRegisters registers;
  if (p.b_panels)
    in_row_parts(p, [space](const Gemm& part) { gemm_panels<AmxVec, Bf16Pairs>(part, space); });
  else
    gemm_bf16<AmxVec>(p, space);
  if (p.stream) Vec::fence();
}

}  // namespace sparsight::cpu
