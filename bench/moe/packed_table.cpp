#include "bench/moe/packed_table.h"

#include <algorithm>
#include <cstdio>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "bench/moe/contenders.h"
#include "bench/moe/medians.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::bench {
namespace {

constexpr int64_t kSmallBatch = 197;  // the tokens of one image of ViT

double largest_error(const std::vector<Load>& loads, const ExpertMlpWeights& weights, const PackedExperts& packed) {
  double error = 0;
  for (const Load& load : loads) {
    const at::Tensor exact = run_ours(load, weights);
    const at::Tensor difference = (run_packed(load, packed) - exact).abs().max() / exact.abs().max();
    error = std::max(error, difference.item<double>());
  }
  return error;
}

}  // namespace

void print_packed_table(const PackedSizes& sizes) {
  const c10::AutoGradMode no_grad(false);
  std::printf(
      "\nExperts packed in fewer bits, forward, ms; error: largest difference from fp32 over the largest value\n\n"
      "   T    E k |     fp32 |     bf16  faster   error |     int8  faster   error\n");
  for (const int64_t experts : sizes.experts) {
    const ExpertMlpWeights weights = random_weights(experts);
    const PackedExperts bf16 = pack_expert_weights(weights, WeightType::bf16),
                        int8 = pack_expert_weights(weights, WeightType::int8);
    for (const int64_t k : sizes.k)
      for (const int64_t tokens : sizes.tokens) {
        if (tokens > kSmallBatch) continue;
        const std::vector<Load> loads = random_loads(tokens, experts, k);
        const auto each = [&loads](const auto& run) {
          return Timed{[&loads, run](int load) { run(loads[static_cast<size_t>(load)]); }, {}};
        };
        const std::vector<double> t = medians({each([&](const Load& load) { return run_ours(load, weights); }),
                                               each([&](const Load& load) { return run_packed(load, bf16); }),
                                               each([&](const Load& load) { return run_packed(load, int8); })},
                                              sizes.rounds);
        std::printf("%5ld %4ld %ld | %8.3f | %8.3f %7.2f %7.4f | %8.3f %7.2f %7.4f\n", tokens, experts, k, 1e3 * t[0],
                    1e3 * t[1], t[0] / t[1], largest_error(loads, weights, bf16), 1e3 * t[2], t[0] / t[2],
                    largest_error(loads, weights, int8));
        std::fflush(stdout);
      }
  }
}

}  // namespace sparsight::bench
