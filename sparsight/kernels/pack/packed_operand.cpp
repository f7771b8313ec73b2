#include "sparsight/kernels/pack/packed_operand.h"

#include <algorithm>

#include "sparsight/kernels/memory/arena.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

// Rows from which packing pays: as many as a few tasks have.
constexpr int64_t kBf16Rows = 288, kFp32Rows = 576;
constexpr int64_t kColumns = 96;  // per task, a multiple of kPanelColumns

// fp32: a B that is not transposed is copied into panels on the way, at no cost, and tiles have an order of their own.
int64_t fewest_rows(const WeightView& matrices, bool bf16) {
  if (bf16) return kBf16Rows;
  return matrices.transposed && !kernels().has_tiles ? kFp32Rows : INT64_MAX;
}

// Packs the matrices of these experts side by side, for `to`.
void pack(Threads& threads, const WeightView& weights, const PanelOrder& order,
          const std::pmr::vector<int64_t>& experts, std::pmr::vector<PackedMatrix>& to) {
  const auto count = static_cast<int64_t>(experts.size());
  const int64_t bytes = order.bytes(weights.rows, weights.columns);
  const auto memory = std::make_shared<const ArenaArray>(static_cast<size_t>(count * bytes));
  for (int64_t i = 0; i < count; ++i)
    to[static_cast<size_t>(experts[static_cast<size_t>(i)])] = {
        order, weights.rows, weights.columns, static_cast<char*>(memory->data()) + i * bytes, nullptr, memory};
  const int64_t parts = (weights.columns + kColumns - 1) / kColumns;
  run_tasks(threads, count * parts, [&](int64_t task, const auto&) {
    const int64_t expert = experts[static_cast<size_t>(task / parts)], column = task % parts * kColumns;
    to[static_cast<size_t>(expert)].pack_columns(weights, expert, column, std::min(kColumns, weights.columns - column));
  });
}

}  // namespace

PackedOperand::PackedOperand(Threads& threads, const WeightView& matrices, const int64_t* offset, int64_t experts,
                             bool bf16) {
  std::pmr::vector<int64_t> packed(scratch());  // experts
  for (int64_t e = 0; e < experts; ++e)
    if (offset[e + 1] - offset[e] >= fewest_rows(matrices, bf16)) packed.push_back(e);
  if (packed.empty()) return;
  const WeightType type = bf16 ? WeightType::bf16 : WeightType::fp32;
  const PanelOrder order = panel_order(type, rows_together(type));
  matrices_.resize(static_cast<size_t>(experts));
  PackedCopies* const copies = experts == 1 ? PackedCopies::current() : nullptr;
  const auto packs = [&] { pack(threads, matrices, order, packed, matrices_); };
  if (!copies) {
    packs();
    return;
  }
  const PackedKey key{matrices.data, matrices.rows, matrices.columns, matrices.transposed, type};
  matrices_[0] = copies->get(key, [&] {
    packs();
    return matrices_[0];
  });
}

void PackedOperand::serve(Gemm& p, int64_t expert, int64_t row, int64_t column) const {
  if (matrices_.empty() || !matrices_[static_cast<size_t>(expert)]) return;
  matrices_[static_cast<size_t>(expert)].serve(p, row, column);
  if (!p.prefetch_whole) p.prefetch = nullptr;  // a plain matrix, or not what comes next
}

}  // namespace sparsight::cpu
