#include "sparsight/kernels/conv/window_rows.h"

namespace sparsight::cpu {
namespace {

// Writes a row of a matrix that is stored in blocks of columns.
class BlockedRow {
 public:
  BlockedRow(float* to, int64_t block) : to_(to), block_(block) {}
  void copy(const float* from, int64_t count) {
    each_piece(count, [&](float* to, int64_t piece) {
      std::copy_n(from, piece, to);
      from += piece;
    });
  }
  void zeros(int64_t count) {
    each_piece(count, [](float* to, int64_t piece) { std::fill_n(to, piece, 0.0F); });
  }

 private:
  template <class Write>
  void each_piece(int64_t count, const Write& write) {
    while (count > 0) {
      const int64_t piece = std::min(count, kBlock - in_block_);
      write(to_ + in_block_, piece);
      in_block_ += piece, count -= piece;
      if (in_block_ == kBlock) in_block_ = 0, to_ += block_;
    }
  }
  float* to_;
  int64_t block_, in_block_ = 0;
};

}  // namespace

void WindowRows::write(int64_t row, float* to, int64_t block) const {
  const int64_t image = row / rows_of_image(), i = row % rows_of_image() / across.outputs, j = row % across.outputs;
  const int64_t top = i * down.stride + down.first, left = j * across.stride + across.first;
  const int64_t zeros_left = std::clamp<int64_t>(-left, 0, across.taps),
                inside = std::clamp<int64_t>(across.side - std::max<int64_t>(left, 0), 0, across.taps - zeros_left),
                zeros_right = across.taps - zeros_left - inside;
  BlockedRow out(to, block);
  for (int64_t y = top; y < top + down.taps; ++y) {
    if (y < 0 || y >= down.side) {
      out.zeros(across.taps * channels);
      continue;
    }
    out.zeros(zeros_left * channels);
    out.copy(maps + ((image * down.side + y) * across.side + left + zeros_left) * channels, inside * channels);
    out.zeros(zeros_right * channels);
  }
}

}  // namespace sparsight::cpu
