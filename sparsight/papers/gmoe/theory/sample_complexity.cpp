#include "sparsight/papers/gmoe/theory/sample_complexity.h"

#include <algorithm>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_pinv.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "sparsight/ops/random_fill.h"

namespace sparsight::gmoe {

SampleComplexity sample_complexity(const SampleSearch& search,
                                   const std::function<bool(int64_t samples, int64_t trial)>& succeeds) {
  std::map<int64_t, double> tried;
  const auto enough = [&](int64_t samples) {
    int64_t successes = 0;
    for (int64_t trial = 0; trial < search.trials; ++trial) successes += succeeds(samples, trial) ? 1 : 0;
    tried[samples] = static_cast<double>(successes) / static_cast<double>(search.trials);
    return tried[samples] >= 1 - search.delta;
  };
  int64_t low = 0, high = search.first;
  while (!enough(high) && high < search.largest) low = high, high = std::min(2 * high, search.largest);
  SampleComplexity found;
  if (tried.at(high) >= 1 - search.delta) {
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (enough(middle) ? high : low) = middle;
    }
    found.samples = high;
  }
  for (const auto& [samples, share] : tried) found.curve.push_back({samples, share});
  return found;
}

double linear_target_error(int64_t width, double noise, int64_t samples, uint64_t seed) {
  const auto normal = [&](at::IntArrayRef sizes, const char* purpose, double std) {
    at::Tensor values = at::empty(sizes, at::kDouble);
    fill_normal(values, RandomStream(seed, purpose, static_cast<uint64_t>(samples)), 0, std);
    return values;
  };
  at::Tensor w = normal({width, 1}, "linear_target.weight", 1);
  w = w / at::linalg_vector_norm(w);
  const at::Tensor x = normal({samples, width}, "linear_target.input", 1);
  const at::Tensor y = x.matmul(w) + normal({samples, 1}, "linear_target.noise", noise);
  return at::linalg_vector_norm(at::linalg_pinv(x).matmul(y) - w).item<double>();
}

}  // namespace sparsight::gmoe
