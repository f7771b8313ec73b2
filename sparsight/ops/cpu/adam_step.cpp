#include "sparsight/ops/cpu/adam_step.h"

#include <algorithm>
#include <cmath>

#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kChunk = 16384;  // elements: 64 KB of each tensor

AdamFactors factors_of(const AdamStep& step, double updates) {
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

// As torch's operations in place do, so that autograd detects saved tensors that were overwritten.
void count_writes(const AdamTensors& p) {
  for (const at::Tensor* x : {&p.value, &p.exp_avg, &p.exp_avg_sq, &p.average})
    if (x->defined() && !x->is_inference()) x->unsafeGetTensorImpl()->bump_version();
}

struct Chunk {
  AdamArrays arrays;
  AdamFactors factors;
};

std::vector<Chunk> chunks_of(const std::vector<AdamTensors>& parameters, const AdamStep& step) {
  std::vector<Chunk> chunks;
  for (const AdamTensors& p : parameters) {
    count_writes(p);
    const AdamFactors factors = factors_of(step, p.updates);
    float* const average = p.average.defined() && step.average_share != 0 ? p.average.data_ptr<float>() : nullptr;
    for (int64_t first = 0; first < p.value.numel(); first += kChunk)
      chunks.push_back({{.value = p.value.data_ptr<float>() + first,
                         .gradient = p.gradient.const_data_ptr<float>() + first,
                         .exp_avg = p.exp_avg.data_ptr<float>() + first,
                         .exp_avg_sq = p.exp_avg_sq.data_ptr<float>() + first,
                         .average = average ? average + first : nullptr,
                         .count = std::min(kChunk, p.value.numel() - first)},
                        factors});
  }
  return chunks;
}

}  // namespace

void adam_step(const std::vector<AdamTensors>& parameters, const AdamStep& step) {
  const std::vector<Chunk> chunks = chunks_of(parameters, step);
  const auto kernel = kernels().adam;
  run_tasks(std::ssize(chunks), [&](int64_t i, const auto&) {
    kernel(chunks[static_cast<size_t>(i)].factors, chunks[static_cast<size_t>(i)].arrays);
  });
}

}  // namespace sparsight::cpu
