#include "sparsight/kernels/pack/pack_experts.h"

#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

// Calls body(expert, chunk) for each chunk of the hidden layer of each expert.
template <class Body>
void for_chunks(Threads& threads, const PackedLayout& layout, int64_t experts, const Body& body) {
  run_tasks(threads, experts * layout.chunks(),
            [&](int64_t task, const auto&) { body(task / layout.chunks(), task % layout.chunks()); });
}

}  // namespace

void pack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* w1, const void* w2,
                  void* packed) {
  const int64_t width = layout.width, hidden = layout.hidden, matrix = width * hidden * layout.element();
  for_chunks(threads, layout, experts, [&](int64_t expert, int64_t chunk) {
    char* const to = static_cast<char*>(packed) + expert * layout.expert_bytes();
    const MatrixView first{layout.type, width, hidden, static_cast<const char*>(w1) + expert * matrix},
        second{layout.type, hidden, width, static_cast<const char*>(w2) + expert * matrix};
    const int64_t start = chunk * kBlock, count = layout.chunk_columns(chunk);
    layout.first_matrix(to, chunk).pack(first.part(0, width, start, count), Outputs::columns);
    layout.second_matrix(to, chunk).pack(second.part(start, count, 0, width), Outputs::columns);
  });
}

void unpack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* packed, void* w1,
                    void* w2) {
  const int64_t width = layout.width, hidden = layout.hidden, matrix = width * hidden * layout.element();
  for_chunks(threads, layout, experts, [&](int64_t expert, int64_t chunk) {
    // (What is only read is not written through a view.)
    char* const from = static_cast<char*>(const_cast<void*>(packed)) + expert * layout.expert_bytes();
    const int64_t start = chunk * kBlock * layout.element();
    layout.first_matrix(from, chunk)
        .unpack(Outputs::columns, static_cast<char*>(w1) + expert * matrix + start, hidden, nullptr);
    layout.second_matrix(from, chunk)
        .unpack(Outputs::columns, static_cast<char*>(w2) + expert * matrix + start * width, width, nullptr);
  });
}

}  // namespace sparsight::cpu
