#include "sparsight/kernels/elementwise/adam_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kChunk = 16384;  // elements: 64 KB of each array

AdamFactors adam_factors(const AdamStep& step, double updates) {
  const double correction1 = 1 - std::pow(step.beta1, updates), correction2 = 1 - std::pow(step.beta2, updates);
  const auto rounded = [](double x) { return static_cast<float>(x); };
  return {.gradient = rounded(step.gradient_factor),
          .coupled_decay = step.decoupled ? 0.0f : rounded(step.weight_decay),
          .kept = step.decoupled ? rounded(1 - step.lr * step.weight_decay) : 1.0f,
          .beta1 = rounded(step.beta1),
          .one_minus_beta1 = rounded(1 - step.beta1),
          .beta2 = rounded(step.beta2),
          .one_minus_beta2 = rounded(1 - step.beta2),
          .root_factor = rounded(1 / std::sqrt(correction2)),
          .eps = rounded(step.eps),
          .minus_step_size = rounded(-step.lr / correction1),
          .average_share = rounded(step.average_share)};
}

struct Chunk {
  AdamArrays arrays;
  AdamFactors factors;
};

std::vector<Chunk> split_chunks(std::span<const AdamParameter> parameters, const AdamStep& step) {
  std::vector<Chunk> chunks;
  for (const AdamParameter& p : parameters) {
    const AdamFactors factors = adam_factors(step, p.updates);
    const AdamArrays& all = p.arrays;
    float* const average = step.average_share != 0 ? all.average : nullptr;
    for (int64_t first = 0; first < all.count; first += kChunk)
      chunks.push_back({{.value = all.value + first,
                         .gradient = all.gradient + first,
                         .exp_avg = all.exp_avg + first,
                         .exp_avg_sq = all.exp_avg_sq + first,
                         .average = average ? average + first : nullptr,
                         .count = std::min(kChunk, all.count - first)},
                        factors});
  }
  return chunks;
}

}  // namespace

void adam_step(Threads& threads, std::span<const AdamParameter> parameters, const AdamStep& step) {
  const std::vector<Chunk> chunks = split_chunks(parameters, step);
  const auto kernel = training_kernels().adam;
  run_tasks(threads, std::ssize(chunks), [&](int64_t i, const auto&) {
    kernel(chunks[static_cast<size_t>(i)].factors, chunks[static_cast<size_t>(i)].arrays);
  });
}

}  // namespace sparsight::cpu
