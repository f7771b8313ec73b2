#include "sparsight/kernels/elementwise/softmax_rows.h"

#include <algorithm>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kElementsOfTask = 4096;  // some microseconds of work

}  // namespace

void softmax_rows(Threads& threads, const float* x, float* out, int64_t rows, int64_t columns) {
  const auto kernel = kernels().softmax;
  const int64_t grain = std::max<int64_t>(1, kElementsOfTask / std::max<int64_t>(1, columns));
  run_ranges(threads, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(x + r * columns, out + r * columns, columns);
  });
}

}  // namespace sparsight::cpu
