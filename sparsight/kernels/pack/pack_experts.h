// Packs the weights of experts into the layout of packed_layout.h, and unpacks them.
#pragma once

#include "sparsight/kernels/pack/packed_layout.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// w1: [E,D,F], w2: [E,F,D], of the layout's type; packed: [E, bytes of an expert].
void pack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* w1, const void* w2,
                  void* packed);
void unpack_experts(Threads& threads, const PackedLayout& layout, int64_t experts, const void* packed, void* w1,
                    void* w2);

}  // namespace sparsight::cpu
