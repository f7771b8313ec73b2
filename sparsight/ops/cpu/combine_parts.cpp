#include "sparsight/ops/cpu/combine_parts.h"

#include <vector>

#include "sparsight/ops/cpu/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kCombineGrain = 32;  // tokens

}  // namespace

void combine_parts(const Kernels& kernels, const RowMap& map, const float* gate, const float* rows, int64_t ld,
                   int64_t parts, int64_t width, float* out, const ResidualRows& residual) {
  const int64_t *row_of = map.token_rows.const_data_ptr<int64_t>(),
                *offset = map.token_offsets.const_data_ptr<int64_t>();
  const int64_t count = map.row_token.size(0);
  run_ranges(map.tokens, kCombineGrain, [&](int64_t begin, int64_t end) {
    std::vector<const float*> from;
    std::vector<float> factor;
    for (int64_t j = begin; j < end; ++j) {
      from.clear();
      factor.clear();
      if (residual.residual() && !residual.drops())
        from.push_back(residual.residual() + j * width), factor.push_back(1.0f);
      for (int64_t i = offset[j]; i < offset[j + 1]; ++i)
        for (int64_t p = 0; p < parts; ++p) {
          from.push_back(rows + (p * count + row_of[i]) * ld);
          factor.push_back(gate ? gate[row_of[i]] : 1.0f);
        }
      kernels.scaled_sum(from.data(), factor.data(), static_cast<int64_t>(from.size()), out + j * width, width);
      residual.finish(kernels, j, 1, out + j * width);
    }
  });
}

}  // namespace sparsight::cpu
