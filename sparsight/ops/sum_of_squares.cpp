#include "sparsight/ops/sum_of_squares.h"

#include <algorithm>
#include <numeric>

#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/off_cpu.h"

namespace sparsight {
namespace {

constexpr int64_t kChunk = 16384, kPiece = 2048;  // elements; a piece is summed in fp32, in several lanes

struct Chunk {
  const at::Tensor* tensor;
  int64_t first, count;
};

double squares_of_floats(const float* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i += kPiece) sum += cpu::kernels().dot(x + i, x + i, std::min(kPiece, count - i));
  return sum;
}

double squares_of(const Chunk& chunk) {
  if (chunk.tensor->scalar_type() == at::kFloat)
    return squares_of_floats(chunk.tensor->const_data_ptr<float>() + chunk.first, chunk.count);
  const double* const x = chunk.tensor->const_data_ptr<double>() + chunk.first;
  return std::inner_product(x, x + chunk.count, x, 0.0);
}

// On the CPU without gaps or overlaps, in fp32 or fp64: its elements are those of its memory, in any order.
at::Tensor dense(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor x = tensor.detach().to(type);
  return x.is_non_overlapping_and_dense() ? x : x.contiguous();
}

}  // namespace

double sum_of_squares(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  double elsewhere = 0;
  for (const at::Tensor& tensor : tensors)
    if (tensor.is_cpu())
      all.push_back(dense(tensor));
    else
      elsewhere += off_cpu::sum_of_squares(tensor);
  std::vector<Chunk> chunks;
  for (const at::Tensor& tensor : all)
    for (int64_t first = 0; first < tensor.numel(); first += kChunk)
      chunks.push_back({&tensor, first, std::min(kChunk, tensor.numel() - first)});
  std::vector<double> sums(chunks.size());
  cpu::run_tasks(std::ssize(chunks), [&](int64_t i, const auto&) {
    sums[static_cast<size_t>(i)] = squares_of(chunks[static_cast<size_t>(i)]);
  });
  return std::accumulate(sums.begin(), sums.end(), elsewhere);
}

}  // namespace sparsight
