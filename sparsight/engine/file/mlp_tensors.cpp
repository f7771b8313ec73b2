#include "sparsight/engine/file/mlp_tensors.h"

#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::engine {

int64_t MlpTensors::bytes() const {
  int64_t sum = w1.bytes() + w2.bytes();
  for (const auto& tensor : {w1_scale, w2_scale, b1, b2})
    if (tensor) sum += tensor->bytes();
  return sum;
}

void read_matrices(const ByteSource& file, const MlpTensors& tensors, int64_t expert, cpu::PackedExperts& experts) {
  const Bytes w1 = read_tensor(file, tensors.w1), w2 = read_tensor(file, tensors.w2);
  const cpu::MlpShape& shape = experts.shape();
  cpu::OwnThreads thread(1);
  experts.set(
      thread, expert,
      {{experts.type(), shape.width, shape.hidden, w1.data()}, {experts.type(), shape.hidden, shape.width, w2.data()}});
}

void read_vectors(const ByteSource& file, const MlpTensors& tensors, int64_t expert, cpu::PackedExperts& experts) {
  const auto optional = [&](const std::optional<FrozenTensor>& tensor) {
    return tensor ? read_floats(file, *tensor) : std::vector<float>();
  };
  const auto data = [](const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); };
  const std::vector<float> scale1 = optional(tensors.w1_scale), scale2 = optional(tensors.w2_scale),
                           b1 = optional(tensors.b1), b2 = optional(tensors.b2);
  const cpu::MlpShape& shape = experts.shape();
  cpu::OwnThreads thread(1);
  experts.set(thread, expert,
              {{experts.type(), shape.width, shape.hidden, nullptr, data(scale1)},
               {experts.type(), shape.hidden, shape.width, nullptr, data(scale2)},
               data(b1),
               data(b2)});
}

}  // namespace sparsight::engine
