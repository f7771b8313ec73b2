#include "sparsight/ops/sum_of_squares.h"

#include "sparsight/kernels/elementwise/sum_of_squares.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

// On the CPU without gaps or overlaps, in fp32 or fp64: its elements are those of its memory, in any order.
at::Tensor dense(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor x = tensor.detach().to(type);
  return x.is_non_overlapping_and_dense() ? x : x.contiguous();
}

template <class T>
std::span<const T> to_span(const at::Tensor& x) {
  return {x.const_data_ptr<T>(), static_cast<size_t>(x.numel())};
}

}  // namespace

double sum_of_squares(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> owners;
  std::vector<cpu::Elements> arrays;
  double elsewhere = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cpu()) {
      elsewhere += off_cpu::sum_of_squares(tensor);
      continue;
    }
    const at::Tensor& x = owners.emplace_back(dense(tensor));
    arrays.push_back(x.scalar_type() == at::kFloat ? cpu::Elements(to_span<float>(x)) : to_span<double>(x));
  }
  return elsewhere + cpu::sum_of_squares(cpu::torch_threads(), arrays);
}

}  // namespace sparsight
