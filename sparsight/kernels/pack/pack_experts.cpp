#include "sparsight/kernels/pack/pack_experts.h"

#include "sparsight/kernels/threads/tasks.h"

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
void for_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const Move& move, const Pad& pad) {
  run_tasks(threads, experts * layout.chunks(), [&](int64_t task, const auto&) {
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
void pack_as(Threads& threads, const PackedLayout& layout, int64_t experts, const void* w1, const void* w2,
             void* packed) {
  const T *first = static_cast<const T*>(w1), *second = static_cast<const T*>(w2);
  T* const to = static_cast<T*>(packed);
  for_experts(
      threads, layout, experts,
      [&](bool in_second, int64_t element, int64_t at) { to[at] = (in_second ? second : first)[element]; },
      [&](int64_t at) { to[at] = 0; });
}

template <class T>
void unpack_as(Threads& threads, const PackedLayout& layout, int64_t experts, const void* packed, void* w1, void* w2) {
  const T* const from = static_cast<const T*>(packed);
  T *first = static_cast<T*>(w1), *second = static_cast<T*>(w2);
  for_experts(
      threads, layout, experts,
      [&](bool in_second, int64_t element, int64_t at) { (in_second ? second : first)[element] = from[at]; },
      [](int64_t) {});
}

}  // namespace

void pack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* w1, const void* w2,
                  void* packed) {
  const auto pack = layout.type == WeightType::fp32   ? pack_as<float>
                    : layout.type == WeightType::bf16 ? pack_as<uint16_t>
                                                      : pack_as<int8_t>;
  pack(threads, layout, experts, w1, w2, packed);
}

void unpack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* packed, void* w1,
                    void* w2) {
  const auto unpack = layout.type == WeightType::fp32   ? unpack_as<float>
                      : layout.type == WeightType::bf16 ? unpack_as<uint16_t>
                                                        : unpack_as<int8_t>;
  unpack(threads, layout, experts, packed, w1, w2);
}

}  // namespace sparsight::cpu
