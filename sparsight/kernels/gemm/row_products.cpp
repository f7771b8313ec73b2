#include "sparsight/kernels/gemm/row_products.h"

#include <algorithm>

#include "sparsight/kernels/memory/scratch.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kRows = 96;  // per task: with their columns they stay in the cache
// Up to kFewColumns columns of a transposed matrix the dot products of the small-M kernel are the fastest, so tasks
// have few enough rows for it.
constexpr int64_t kFewColumns = 16, kSmallM = 12;

// Such that all threads have equally many tasks of equal size.
int64_t rows_of_tasks(int64_t rows, int64_t threads) {
  const int64_t most = kRows * threads;
  const int64_t rounds = std::max<int64_t>(1, (rows + most - 1) / most);
  return std::clamp((rows + rounds * threads - 1) / (rounds * threads), kernels().fewest_rows, kRows);
}

}  // namespace

std::pmr::vector<RowTask> row_tasks(const Threads& threads, const RowProducts& products) {
  const int64_t* const offset = products.offset;
  const bool few_columns = products.matrices.transposed && products.matrices.columns <= kFewColumns;
  // Tasks of up to `wanted` rows of an expert, but of at least `fewest` unless it has fewer.
  const int64_t fewest = few_columns ? 1 : kernels().fewest_rows;
  const int64_t wanted = few_columns ? kSmallM : rows_of_tasks(offset[products.experts] - offset[0], threads.count());
  std::pmr::vector<RowTask> tasks(scratch());
  for (int64_t e = 0; e < products.experts; ++e) {
    const int64_t rows = offset[e + 1] - offset[e];
    const int64_t pieces = std::min((rows + wanted - 1) / wanted, std::max<int64_t>(1, rows / fewest));
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t first = rows * piece / pieces;
      tasks.push_back({e, offset[e] + first, rows * (piece + 1) / pieces - first});
    }
  }
  return tasks;
}

RowScratch& row_scratch() {
  thread_local RowScratch scratch;
  return scratch;
}

}  // namespace sparsight::cpu
