#include "sparsight/kernels/pack/pack_experts.h"

#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

// The matrices of each chunk of each expert: body(in W2?, their size, byte in W1 or W2, byte in the packed weights).
template <class Body>
void for_chunks(Threads& threads, const PackedLayout& layout, int64_t experts, const Body& body) {
  run_tasks(threads, experts * layout.chunks(), [&](int64_t task, const auto&) {
    const int64_t expert = task / layout.chunks(), chunk = task % layout.chunks();
    const int64_t columns = layout.chunk_columns(chunk), matrix = expert * layout.width * layout.hidden;
    const int64_t packed = expert * layout.expert_bytes();
    const MatrixSteps first{layout.width, columns, layout.hidden}, second{columns, layout.width, layout.width};
    body(false, first, (matrix + chunk * kBlock) * layout.element(), packed + layout.first_weights(chunk));
    body(true, second, (matrix + chunk * kBlock * layout.width) * layout.element(),
         packed + layout.second_weights(chunk));
  });
}

}  // namespace

void pack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* w1, const void* w2,
                  void* packed) {
  for_chunks(threads, layout, experts, [&](bool in_second, const MatrixSteps& steps, int64_t from, int64_t to) {
    pack_panels(layout, steps, static_cast<const char*>(in_second ? w2 : w1) + from, static_cast<char*>(packed) + to);
  });
}

void unpack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* packed, void* w1,
                    void* w2) {
  for_chunks(threads, layout, experts, [&](bool in_second, const MatrixSteps& steps, int64_t to, int64_t from) {
    unpack_panels(layout, steps, static_cast<const char*>(packed) + from, static_cast<char*>(in_second ? w2 : w1) + to);
  });
}

}  // namespace sparsight::cpu
