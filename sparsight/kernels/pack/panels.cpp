#include "sparsight/kernels/pack/panels.h"

namespace sparsight::cpu {
namespace {

// Calls move(index in the matrix, index in the panels) for each element, and pad(index in the panels) for padding.
template <class Move, class Pad>
void for_elements(const PanelOrder& order, const MatrixSteps& m, const Move& move, const Pad& pad) {
  int64_t at = 0;
  for (int64_t panel = 0; panel < order.padded(m.columns); panel += order.panel)
    for (int64_t step = 0; step < order.padded_rows(m.rows); step += order.depth)
      for (int64_t tile = panel; tile < panel + order.panel; tile += 16)
        for (int64_t row = step; row < step + order.depth; row += order.group)
          for (int64_t column = tile; column < tile + 16; ++column)
            for (int64_t i = row; i < row + order.group; ++i, ++at)
              if (i < m.rows && column < m.columns)
                move(i * m.row_step + column * m.column_step, at);
              else
                pad(at);
}

// Calls body(0 of the type's stored number).
template <class Body>
void with_type(WeightType type, const Body& body) {
  if (type == WeightType::fp32) return body(float{});
  if (type == WeightType::bf16) return body(uint16_t{});
  body(int8_t{});
}

}  // namespace

void pack_panels(const PanelOrder& order, const MatrixSteps& steps, const void* matrix, void* panels) {
  if (order.type == WeightType::fp32 && order.depth == 1) {
    const bool transposed = steps.column_step != 1;
    return kernels().pack_panels({static_cast<const float*>(matrix), transposed ? steps.column_step : steps.row_step,
                                  transposed, steps.rows, steps.columns, order.type, panels});
  }
  with_type(order.type, [&](auto zero) {
    const auto* const from = static_cast<const decltype(zero)*>(matrix);
    auto* const to = static_cast<decltype(zero)*>(panels);
    for_elements(
        order, steps, [&](int64_t element, int64_t at) { to[at] = from[element]; }, [&](int64_t at) { to[at] = zero; });
  });
}

void unpack_panels(const PanelOrder& order, const MatrixSteps& steps, const void* panels, void* matrix) {
  with_type(order.type, [&](auto zero) {
    const auto* const from = static_cast<const decltype(zero)*>(panels);
    auto* const to = static_cast<decltype(zero)*>(matrix);
    for_elements(
        order, steps, [&](int64_t element, int64_t at) { to[element] = from[at]; }, [](int64_t) {});
  });
}

}  // namespace sparsight::cpu
