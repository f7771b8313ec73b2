#include "sparsight/kernels/routing/combine_parts.h"

#include <vector>

#include "sparsight/kernels/memory/scratch.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kCombineGrain = 32;  // tokens

}  // namespace

void combine_parts(Threads& threads, const RowNumbers& map, const float* gate, const RowParts& from, float* out,
                   const ResidualRows& residual) {
  const Kernels& kernel = kernels();
  run_ranges(threads, map.tokens, kCombineGrain, [&](int64_t begin, int64_t end) {
    std::pmr::vector<const float*> summands(scratch());
    std::pmr::vector<float> factor(scratch());
    for (int64_t j = begin; j < end; ++j) {
      summands.clear();
      factor.clear();
      if (residual.residual && !residual.drops())
        summands.push_back(residual.residual + j * from.width), factor.push_back(1.0f);
      for (int64_t i = map.token_offsets[j]; i < map.token_offsets[j + 1]; ++i)
        for (int64_t part = 0; part < from.parts; ++part) {
          summands.push_back(from.rows + (part * map.rows + map.token_rows[i]) * from.ld);
          factor.push_back(gate ? gate[map.token_rows[i]] : 1.0f);
        }
      float* const sum = out + j * from.width;
      kernel.scaled_sum(summands.data(), factor.data(), static_cast<int64_t>(summands.size()), sum, from.width);
      residual.finish(kernel, j, 1, sum);
    }
  });
}

}  // namespace sparsight::cpu
