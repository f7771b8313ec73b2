#include "sparsight/ops/cpu/pack_weights.h"

#include <ATen/ops/empty.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/tasks.h"

namespace sparsight::cpu {
namespace {

// For the panels of a matrix [rows,columns]: calls move(index in the matrix, index in the panels) for each element, and
// pad(index in the panels) for padding.
template <class Move, class Pad>
void for_panels(const PackedLayout& layout, int64_t rows, int64_t columns, int64_t ld, const Move& move,
                const Pad& pad) {
  const int64_t depth = layout.depth, group = layout.group;
  int64_t at = 0;
  for (int64_t panel = 0; panel < layout.padded(columns); panel += layout.panel)
    for (int64_t step = 0; step < layout.padded_rows(rows); step += depth)
      for (int64_t tile = panel; tile < panel + layout.panel; tile += 16)
        for (int64_t row = step; row < step + depth; row += group)
          for (int64_t column = tile; column < tile + 16; ++column)
            for (int64_t i = row; i < row + group; ++i, ++at)
              if (i < rows && column < columns)
                move(i * ld + column, at);
              else
                pad(at);
}

// The same for both matrices of each chunk of each expert: move(in W2?, index in W1 or W2, index in the packed
// weights).
template <class Move, class Pad>
void for_experts(const PackedLayout& layout, int64_t experts, const Move& move, const Pad& pad) {
  run_tasks(experts * layout.chunks(), [&](int64_t task, const auto&) {
    const int64_t expert = task / layout.chunks(), chunk = task % layout.chunks();
    const int64_t columns = layout.chunk_columns(chunk), matrix = expert * layout.width * layout.hidden;
    const int64_t panels = expert * layout.expert_bytes() / layout.element();
    const auto part = [&](bool second, int64_t rows, int64_t count, int64_t ld, int64_t from, int64_t byte) {
      const int64_t to = panels + byte / layout.element();
      for_panels(
          layout, rows, count, ld, [&](int64_t element, int64_t at) { move(second, matrix + from + element, to + at); },
          [&](int64_t at) { pad(to + at); });
    };
    part(false, layout.width, columns, layout.hidden, chunk * kBlock, layout.first_weights(chunk));
    part(true, columns, layout.width, layout.width, chunk * kBlock * layout.width, layout.second_weights(chunk));
  });
}

template <class T>
void pack(const void* w1, const void* w2, const PackedLayout& layout, int64_t experts, void* packed) {
  const T *first = static_cast<const T*>(w1), *second = static_cast<const T*>(w2);
  T* const to = static_cast<T*>(packed);
  for_experts(
      layout, experts,
      [&](bool in_second, int64_t element, int64_t at) { to[at] = (in_second ? second : first)[element]; },
      [&](int64_t at) { to[at] = 0; });
}

template <class T>
void unpack(const void* packed, const PackedLayout& layout, int64_t experts, void* w1, void* w2) {
  const T* const from = static_cast<const T*>(packed);
  T *first = static_cast<T*>(w1), *second = static_cast<T*>(w2);
  for_experts(
      layout, experts,
      [&](bool in_second, int64_t element, int64_t at) { (in_second ? second : first)[element] = from[at]; },
      [](int64_t) {});
}

}  // namespace

at::ScalarType stored_type(WeightType type) {
  return type == WeightType::fp32 ? at::kFloat : type == WeightType::bf16 ? at::kBFloat16 : at::kChar;
}

at::Tensor pack_weights(const at::Tensor& w1, const at::Tensor& w2, const PackedLayout& layout) {
  const int64_t experts = w1.size(0);
  // The arena has large pages, from which long streams are read faster.
  at::Tensor packed = empty_from_arena({experts, layout.expert_bytes() / 4}).view(at::kByte);
  const auto pack_as = layout.type == WeightType::fp32   ? pack<float>
                       : layout.type == WeightType::bf16 ? pack<uint16_t>
                                                         : pack<int8_t>;
  pack_as(w1.const_data_ptr(), w2.const_data_ptr(), layout, experts, packed.data_ptr());
  return packed;
}

UnpackedWeights unpack_weights(const at::Tensor& packed, const PackedLayout& layout) {
  const int64_t experts = packed.size(0);
  const at::ScalarType type = stored_type(layout.type);
  UnpackedWeights out{at::empty({experts, layout.width, layout.hidden}, type),
                      at::empty({experts, layout.hidden, layout.width}, type)};
  const auto unpack_as = layout.type == WeightType::fp32   ? unpack<float>
                         : layout.type == WeightType::bf16 ? unpack<uint16_t>
                                                           : unpack<int8_t>;
  unpack_as(packed.const_data_ptr(), layout, experts, out.w1.data_ptr(), out.w2.data_ptr());
  return out;
}

}  // namespace sparsight::cpu
