#include "bench/moe/memory_use.h"

#include <cstdio>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "bench/measure/own_process.h"
#include "bench/moe/contenders.h"
#include "sparsight/core/machine.h"
#include "sparsight/ops/cpu/arena.h"

namespace sparsight::bench {
namespace {

struct MemoryUse {
  double saved;  // bytes that the forward pass keeps for the backward pass, with its scratch
  double peak;   // of a whole step, without the gradients of weights
};

MemoryUse measure(const Forward& forward, const Load& load, const ExpertMlpWeights& weights) {
  double gradients = 0;
  for (const at::Tensor* w : {&weights.w1, &weights.b1, &weights.w2, &weights.b2}) {
    w->requires_grad_(true);
    gradients += 4.0 * static_cast<double>(w->numel());
  }
  Load in = load;
  in.tokens = load.tokens.detach().requires_grad_(true);
  MemoryUse use{};
  use.peak = peak_growth([&] {
    const int64_t before = resident_memory_bytes();
    const at::Tensor out = forward(in, weights);
    use.saved = static_cast<double>(resident_memory_bytes() - before);
    (out * load.out_grad).sum().backward();
  });
  use.peak -= gradients;
  return use;
}

MemoryUse measure_in_own_process(const Forward& forward, int64_t tokens, int64_t experts, int64_t stack, int64_t k,
                                 int64_t threads) {
  const std::vector<double> values = values_in_own_process(2, [&] {
    at::set_num_threads(static_cast<int>(threads));
    // A small step first, so that what libraries allocate on first use is not counted.
    const ExpertMlpWeights weights = random_weights(stack);
    const Load load = random_loads(tokens, experts, k).front();
    measure(forward, random_loads(64, experts, k).front(), random_weights(stack));
    cpu::release_arena();
    const MemoryUse use = measure(forward, load, weights);
    return std::vector<double>{use.saved, use.peak};
  });
  return {values[0], values[1]};
}

}  // namespace

void print_memory_use(int64_t tokens, int64_t experts, int64_t k, int64_t threads) {
  const MemoryUse ours = measure_in_own_process(run_ours, tokens, experts, experts, k, threads);
  const MemoryUse dense = measure_in_own_process(run_dense, tokens, experts, 1, k, threads);
  const double permuted = 4.0 * static_cast<double>(tokens * k * kWidth), mega = 1 << 20;
  std::printf("Memory of a training step, T=%ld, E=%ld, k=%ld (MiB; without weights and their gradients):\n", tokens,
              experts, k);
  const auto line = [&](const char* what, double own, double yardstick) {
    std::printf("  %s: experts %.0f, dense %.0f, dense and permuted rows %.0f, ratio %.2f\n", what, own / mega,
                yardstick / mega, (yardstick + permuted) / mega, own / (yardstick + permuted));
  };
  line("saved by the forward pass", ours.saved, dense.saved);
  line("peak of the whole step", ours.peak, dense.peak);
  std::printf("\n");
}

}  // namespace sparsight::bench
