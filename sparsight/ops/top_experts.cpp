#include "sparsight/ops/top_experts.h"

#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/off_cpu.h"

namespace sparsight {
namespace {

template <class T>
bool better(T a, T b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

// Insertion into a sorted list of k. Experts are visited by increasing index, so of equal scores the first stays ahead.
template <class T>
void top_of_row(const T* scores, int64_t experts, int64_t k, int64_t* chosen) {
  int64_t filled = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    if (filled == k && !better(scores[expert], scores[chosen[k - 1]])) continue;
    int64_t position = filled < k ? filled++ : k - 1;
    for (; position > 0 && better(scores[expert], scores[chosen[position - 1]]); --position)
      chosen[position] = chosen[position - 1];
    chosen[position] = expert;
  }
}

}  // namespace

at::Tensor top_experts(const at::Tensor& scores, int64_t k) {
  SPARSIGHT_CHECK(scores.dim() == 2 && k >= 1 && k <= scores.size(1));
  if (!scores.is_cpu()) return off_cpu::top_experts(scores, k);
  const at::Tensor rows = scores.detach().contiguous();
  const int64_t tokens = rows.size(0), experts = rows.size(1);
  at::Tensor chosen = at::empty({tokens, k}, at::kLong);
  int64_t* out = chosen.data_ptr<int64_t>();
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "top_experts", [&] {
    const scalar_t* in = rows.const_data_ptr<scalar_t>();
    cpu::run_ranges(tokens, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) top_of_row(in + token * experts, experts, k, out + token * k);
    });
  });
  return chosen;
}

}  // namespace sparsight
