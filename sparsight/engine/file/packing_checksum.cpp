#include "sparsight/engine/file/packing_checksum.h"

#include <cstring>
#include <memory>
#include <vector>

#include "sparsight/core/checksum.h"
#include "sparsight/kernels/experts/packed_experts.h"
#include "sparsight/kernels/memory/arena.h"
#include "sparsight/kernels/pack/packed_matrix.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::engine {
namespace {

// No multiples of a panel, and the hidden layer of experts has two chunks.
constexpr int64_t kTriedInputs = 70, kTriedOutputs = cpu::kBlock + 21;

// Adds what pack() makes in zeroed memory.
template <class Pack>
void add_packed(Checksum& sum, int64_t bytes, const Pack& pack) {
  const std::shared_ptr<const void> memory = cpu::shared_array(bytes);
  std::memset(const_cast<void*>(memory.get()), 0, static_cast<size_t>(bytes));
  pack(memory);
  sum.update(memory.get(), static_cast<size_t>(bytes));
}

void add_type(Checksum& sum, WeightType type) {
  std::vector<uint8_t> numbers(static_cast<size_t>(kTriedInputs * kTriedOutputs * cpu::element_bytes(type)));
  uint32_t state = 1;
  for (uint8_t& number : numbers) number = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  const std::vector<float> scale(static_cast<size_t>(kTriedOutputs), 0.5F);
  for (const int64_t together : {cpu::rows_together(type), int64_t{1}}) {
    const cpu::PanelOrder order = cpu::panel_order(type, together);
    add_packed(sum, cpu::PackedMatrix::memory_bytes(order, kTriedInputs, kTriedOutputs), [&](const auto& memory) {
      cpu::PackedMatrix(order, kTriedInputs, kTriedOutputs, memory)
          .pack({type, kTriedOutputs, kTriedInputs, numbers.data(), scale.data()}, cpu::Outputs::rows);
    });
  }
  const cpu::MlpShape shape{2, kTriedInputs, kTriedOutputs};
  add_packed(sum, cpu::PackedExperts::memory_bytes(shape, type), [&](const auto& memory) {
    cpu::OwnThreads thread(1);
    cpu::PackedExperts experts(shape, type, false, false, memory);
    for (int64_t e = 0; e < shape.experts; ++e)
      experts.set(
          thread, e,
          {{type, kTriedInputs, kTriedOutputs, numbers.data()}, {type, kTriedOutputs, kTriedInputs, numbers.data()}});
  });
}

}  // namespace

std::string packing_checksum() {
  Checksum sum;
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) add_type(sum, type);
  return sum.hex();
}

}  // namespace sparsight::engine
