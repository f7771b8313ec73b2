#include "sparsight/kernels/pack/packed_operand.h"

#include <algorithm>

#include "sparsight/kernels/kernels.h"
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

}  // namespace

PackedOperand::PackedOperand(Threads& threads, const WeightView& matrices, const int64_t* offset, int64_t experts,
                             bool bf16)
    : type_(bf16 ? WeightType::bf16 : WeightType::fp32), position_(static_cast<size_t>(experts), kPlain, scratch()) {
  std::pmr::vector<int64_t> packed(scratch());  // experts
  for (int64_t e = 0; e < experts; ++e) {
    if (offset[e + 1] - offset[e] < fewest_rows(matrices, bf16)) continue;
    position_[static_cast<size_t>(e)] = static_cast<int64_t>(packed.size());
    packed.push_back(e);
  }
  if (packed.empty()) return;
  depth_ = (matrices.rows + rows_together(type_) - 1) / rows_together(type_) * rows_together(type_);
  const int64_t columns = (matrices.columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  bytes_ = depth_ * columns * element_bytes(type_);
  PackedCopies* const copies = experts == 1 ? PackedCopies::current() : nullptr;
  const PackedKey key{matrices.data, matrices.rows, matrices.columns, matrices.transposed, type_};
  const auto packs = [&] { return pack(threads, matrices, packed); };
  panels_ = copies ? copies->get(key, packs) : packs();
}

PackedPanels PackedOperand::pack(Threads& threads, const WeightView& matrices,
                                 const std::pmr::vector<int64_t>& experts) const {
  const auto count = static_cast<int64_t>(experts.size());
  auto panels = std::make_shared<const ArenaArray>(static_cast<size_t>(count * bytes_));
  char* const to = static_cast<char*>(panels->data());
  const int64_t parts = (matrices.columns + kColumns - 1) / kColumns;
  run_tasks(threads, count * parts, [&](int64_t task, const auto&) {
    const int64_t number = task / parts, column = task % parts * kColumns;
    const float* const from = matrices.at(experts[static_cast<size_t>(number)], 0, column);
    kernels().pack_panels({from, matrices.ld(), matrices.transposed, matrices.rows,
                           std::min(kColumns, matrices.columns - column), type_,
                           to + number * bytes_ + column * depth_ * element_bytes(type_)});
  });
  return panels;
}

void PackedOperand::serve(Gemm& p, int64_t expert, int64_t row, int64_t column) const {
  if (!panels_ || position_[static_cast<size_t>(expert)] == kPlain) return;
  p.b = static_cast<const char*>(panels_->data()) + position_[static_cast<size_t>(expert)] * bytes_ +
        (column * depth_ + row * kPanelColumns) * element_bytes(type_);
  p.b_panels = true, p.b_transposed = false;
  p.b_type = type_;
  p.b_panel_rows = depth_;
  if (!p.prefetch_whole) p.prefetch = nullptr;  // a plain matrix, or not what comes next
}

}  // namespace sparsight::cpu
