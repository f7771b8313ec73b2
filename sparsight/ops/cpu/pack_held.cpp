#include "sparsight/ops/cpu/pack_held.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "sparsight/ops/cpu/pool.h"

namespace sparsight::cpu {
namespace {

// Calls move(element of the matrix, element of the tiles) for all elements of the tiles that hold the matrix
// [rows,columns], and pad(element of the tiles) for their padding.
template <class Move, class Pad>
void for_tiles(const TileLayout& layout, int64_t rows, int64_t columns, int64_t ld, const Move& move, const Pad& pad) {
  const int64_t depth = layout.depth(), group = layout.group();
  int64_t at = 0;
  for (int64_t panel = 0; panel < layout.padded(columns); panel += kPanelColumns)
    for (int64_t step = 0; step < layout.padded(rows); step += depth)
      for (int64_t tile = panel; tile < panel + kPanelColumns; tile += 16)
        for (int64_t row = step; row < step + depth; row += group)
          for (int64_t column = tile; column < tile + 16; ++column)
            for (int64_t i = row; i < row + group; ++i, ++at)
              if (i < rows && column < columns)
                move(i * ld + column, at);
              else
                pad(at);
}

// The same for both matrices of each chunk of each expert: move(in W2?, element of the expert's matrix, of its tiles).
template <class Move, class Pad>
void for_experts(const TileLayout& layout, int64_t experts, const Move& move, const Pad& pad) {
  at::parallel_for(0, experts * layout.chunks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t expert = task / layout.chunks(), chunk = task % layout.chunks();
      const int64_t columns = layout.chunk_columns(chunk), matrix = expert * layout.width * layout.hidden;
      const int64_t tiles = expert * layout.expert_bytes() / layout.element();
      const auto part = [&](bool second, int64_t rows, int64_t count, int64_t ld, int64_t from, int64_t byte) {
        const int64_t to = tiles + byte / layout.element();
        for_tiles(
            layout, rows, count, ld,
            [&](int64_t element, int64_t at) { move(second, matrix + from + element, to + at); },
            [&](int64_t at) { pad(to + at); });
      };
      part(false, layout.width, columns, layout.hidden, chunk * kHiddenChunk, layout.first_weights(chunk));
      part(true, columns, layout.width, layout.width, chunk * kHiddenChunk * layout.width,
           layout.second_weights(chunk));
    }
  });
}

template <class T>
void pack(const void* w1, const void* w2, const TileLayout& layout, int64_t experts, void* tiles) {
  const T *first = static_cast<const T*>(w1), *second = static_cast<const T*>(w2);
  T* const to = static_cast<T*>(tiles);
  for_experts(
      layout, experts,
      [&](bool in_second, int64_t element, int64_t at) { to[at] = (in_second ? second : first)[element]; },
      [&](int64_t at) { to[at] = 0; });
}

template <class T>
void unpack(const void* tiles, const TileLayout& layout, int64_t experts, void* w1, void* w2) {
  const T* const from = static_cast<const T*>(tiles);
  T *first = static_cast<T*>(w1), *second = static_cast<T*>(w2);
  for_experts(
      layout, experts,
      [&](bool in_second, int64_t element, int64_t at) { (in_second ? second : first)[element] = from[at]; },
      [](int64_t) {});
}

}  // namespace

at::Tensor pack_held(const at::Tensor& w1, const at::Tensor& w2, const TileLayout& layout) {
  const int64_t experts = w1.size(0);
  // The pool's memory comes in large pages, which long streams are read from faster.
  at::Tensor tiles = empty_from_pool({experts, layout.expert_bytes() / 4}).view(at::kByte);
  (layout.type == WeightType::bf16 ? pack<uint16_t> : pack<int8_t>)(w1.const_data_ptr(), w2.const_data_ptr(), layout,
                                                                    experts, tiles.data_ptr());
  return tiles;
}

UnpackedWeights unpack_held(const at::Tensor& tiles, const TileLayout& layout) {
  const int64_t experts = tiles.size(0);
  const auto type = layout.type == WeightType::bf16 ? at::kBFloat16 : at::kChar;
  UnpackedWeights out{at::empty({experts, layout.width, layout.hidden}, type),
                      at::empty({experts, layout.hidden, layout.width}, type)};
  (layout.type == WeightType::bf16 ? unpack<uint16_t> : unpack<int8_t>)(tiles.const_data_ptr(), layout, experts,
                                                                        out.w1.data_ptr(), out.w2.data_ptr());
  return out;
}

}  // namespace sparsight::cpu
