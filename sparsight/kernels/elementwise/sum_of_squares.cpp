#include "sparsight/kernels/elementwise/sum_of_squares.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr size_t kSquaresChunk = 16384, kSquaresPiece = 2048;  // elements; a piece is summed in fp32, in several lanes

double sum_squares(std::span<const float> x) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); i += kSquaresPiece)
    sum += kernels().dot(&x[i], &x[i], static_cast<int64_t>(std::min(kSquaresPiece, x.size() - i)));
  return sum;
}

double sum_squares(std::span<const double> x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }

}  // namespace

double sum_of_squares(Threads& threads, std::span<const Elements> arrays) {
  std::vector<Elements> chunks;
  for (const Elements& array : arrays)
    std::visit(
        [&](const auto& x) {
          for (size_t first = 0; first < x.size(); first += kSquaresChunk)
            chunks.emplace_back(x.subspan(first, std::min(kSquaresChunk, x.size() - first)));
        },
        array);
  std::vector<double> sums(chunks.size());
  run_tasks(threads, std::ssize(chunks), [&](int64_t i, const auto&) {
    sums[static_cast<size_t>(i)] =
        std::visit([](const auto& x) { return sum_squares(x); }, chunks[static_cast<size_t>(i)]);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace sparsight::cpu
