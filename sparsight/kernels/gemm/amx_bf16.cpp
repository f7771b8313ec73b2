// The bf16 GEMMs of the amx level outside packed experts (isa/amx.cpp): rows of A are rounded to bf16 once per
// block of the depth, and are read by the tile registers as they lie there. Panels of packed bf16 weights need no other
// layout: 32 of their rows are a tile. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/gemm/amx.h"

#include "sparsight/kernels/gemm/bf16_inl.h"
#include "sparsight/kernels/isa/vectors_avx512_bf16_inl.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kDeep = 32;                                         // elements of the depth in a tile
constexpr int64_t kRowBytes = kBlock * 2, kPairsPerTile = kDeep / 2;  // of rounded rows of A; rows of a tile
constexpr int kTileColumns = 16, kAcross = 2 * kTileColumns;          // columns of a tile, and of the scratch
static_assert(kPanelColumns == kTileColumns && kBlock % kDeep == 0);

// Two by two tiles of C, or fewer: rows 0 to 15 and 16 to 31, columns 0 to 15 and 16 to 31.
template <bool kTall, bool kWide>
class TilesOfC {
 public:
  TilesOfC(const Tile& t, int rows)
      : t_(t),
        rows_(rows),
        whole_(rows == (kTall ? 2 : 1) * kTileRows && t.columns >= (kWide ? 2 : 1) * kTileColumns) {}

  void begin() {
    if (whole_ && !t_.stream) request();
    if (t_.start == Start::zero) return zero();
    if (t_.start == Start::bias) {
      copy_row(t_.bias, edge_);
      load(edge_, 0, 0);
    } else if (whole_) {
      load(t_.c, t_.c_ld, kTileRows * t_.c_ld);
    } else {
      for (int64_t i = 0; i < rows_; ++i) copy_row(t_.c + i * t_.c_ld, edge_ + i * kAcross);
      load(edge_, kAcross, kTileRows * kAcross);
    }
  }

  void end() {
    if (whole_ && !t_.stream) return store(t_.c, t_.c_ld);
    store(edge_, kAcross);
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

  void zero() {
    _tile_zero(0);
    if constexpr (kWide) _tile_zero(1);
    if constexpr (kTall) _tile_zero(2);
    if constexpr (kTall && kWide) _tile_zero(3);
  }
  // ld: of the rows; below: from the first to row 16.
  void load(const float* from, int64_t ld, int64_t below) {
    compiler_barrier();
    _tile_loadd(0, from, ld * 4);
    if constexpr (kWide) _tile_loadd(1, from + kTileColumns, ld * 4);
    if constexpr (kTall) _tile_loadd(2, from + below, ld * 4);
    if constexpr (kTall && kWide) _tile_loadd(3, from + below + kTileColumns, ld * 4);
  }
  void store(float* to, int64_t ld) {
    _tile_stored(0, to, ld * 4);
    if constexpr (kWide) _tile_stored(1, to + kTileColumns, ld * 4);
    if constexpr (kTall) _tile_stored(2, to + kTileRows * ld, ld * 4);
    if constexpr (kTall && kWide) _tile_stored(3, to + kTileRows * ld + kTileColumns, ld * 4);
    compiler_barrier();
  }

  const Tile& t_;
  int rows_;
  bool whole_;
  alignas(64) float edge_[2 * kTileRows * kAcross];
};

// Where tiles 4 and 5 (16 rows of A each) and 6 and 7 (16 columns of B) are read, for kDeep of the depth.
template <bool kTall, bool kWide>
struct Operands {
  const char *a, *b, *right;

  void advance() { a += 2 * kDeep, b += kTileBytes, right += kTileBytes; }
  void load() const {
    _tile_loadd(4, a, kRowBytes);
    _tile_loadd(6, b, 64);
    if constexpr (kWide) _tile_loadd(7, right, 64);
    if constexpr (kTall) _tile_loadd(5, a + kTileRows * kRowBytes, kRowBytes);
  }
  // C += what is loaded.
  static void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kWide) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTall) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTall && kWide) _tile_dpbf16ps(3, 5, 7);
  }
  // C += what is loaded, then what is here is; each tile is loaded as soon as its last product has been issued.
  void multiply_and_load() const {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kWide) _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(4, a, kRowBytes);
    if constexpr (kTall) _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(6, b, 64);
    if constexpr (kTall && kWide) _tile_dpbf16ps(3, 5, 7);
    if constexpr (kWide) _tile_loadd(7, right, 64);
    if constexpr (kTall) _tile_loadd(5, a + kTileRows * kRowBytes, kRowBytes);
  }
};

// The last rows of a panel as a tile.
void copy_rest(const char* panel, int64_t depth, char* tile) {
  const auto bytes = static_cast<size_t>((depth + 1) / 2 * 64);
  std::memcpy(tile, panel, bytes);
  std::memset(tile + bytes, 0, static_cast<size_t>(kTileBytes) - bytes);
}

template <bool kTall, bool kWide>
void run_tiles(const Tile& t, int rows) {
  TilesOfC<kTall, kWide> c(t, rows);
  compiler_barrier();
  c.begin();
  const auto* const b = static_cast<const char*>(t.b);
  const int64_t steps = t.depth / kDeep, rest = t.depth % kDeep;
  Operands<kTall, kWide> at{reinterpret_cast<const char*>(t.rounded), b, b + t.b_panel * 2};
  if (steps > 0) {
    at.load();
    for (int64_t step = 1, credit = kPairsPerTile; step < steps; ++step, credit += kPairsPerTile) {
      at.advance();
      at.multiply_and_load();
      for (; credit >= t.every; credit -= t.every) t.fetch->next<Fetch::kNotFirst>();
    }
    at.multiply();
    at.advance();
  }
  if (rest > 0) {
    alignas(64) char copies[2 * kTileBytes];
    copy_rest(at.b, rest, copies);
    if constexpr (kWide) copy_rest(at.right, rest, copies + kTileBytes);
    compiler_barrier();
    at.b = copies, at.right = copies + kTileBytes;
    at.load();
    at.multiply();
  }
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

const int64_t kAmxBf16Floats = max(kRoundedRows + kRowsRead * kBlock / 2, bf16_floats<AmxVec>());

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
