// The optimiser's step over 22 M parameters (ViT-S/16), with clipping and with or without an average of the weights:
// the operation of ops/adam_step.h, the torch operations that it replaces, and at::_fused_adamw_ alone. Bytes per
// second count each tensor once per read or write that one pass needs: 28 per parameter, 36 with an average, and 4 for
// the norm.
#include <cmath>

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include "sparsight/ops/adam_step.h"
#include "sparsight/ops/sum_of_squares.h"

namespace sparsight {
namespace {

constexpr int64_t kMatrices = 37, kElements = 1536 * 384;  // 21.8 M parameters

struct AdamBench {
  std::vector<at::Tensor> values, gradients, means, squares, averages, steps;

  AdamBench() {
    for (int64_t i = 0; i < kMatrices; ++i) {
      for (auto* list : {&values, &gradients, &means, &squares, &averages})
        list->push_back(at::full({kElements}, 0.01, at::kFloat));
      steps.push_back(at::zeros({}, at::kFloat));
    }
  }

  // At the norm itself, so that repeated clipping leaves the gradients as they are.
  static double clipping(double norm) { return norm > 0 ? 1 - 1e-9 : 1; }

  void fused_adamw() {
    for (const at::Tensor& step : steps) *step.data_ptr<float>() += 1;
    at::_fused_adamw_(values, gradients, means, squares, at::TensorList{}, steps, 1e-5, 0.9, 0.999, 0.05, 1e-8,
                      /*amsgrad=*/false, /*maximize=*/false);
  }

  void torch_sequence(bool average) {
    double sum = 0;
    for (const at::Tensor& norm : at::_foreach_norm(gradients)) sum += std::pow(norm.item<double>(), 2);
    at::_foreach_mul_(gradients, clipping(std::sqrt(sum)));
    fused_adamw();
    if (average)
      for (size_t i = 0; i < values.size(); ++i) averages[i].lerp_(values[i], 1e-4);
  }

  void ours(bool average) {
    const double factor = clipping(std::sqrt(sum_of_squares(gradients)));
    std::vector<AdamTensors> parameters;
    for (size_t i = 0; i < values.size(); ++i) {
      *steps[i].data_ptr<float>() += 1;
      parameters.push_back(
          {values[i], gradients[i], means[i], squares[i], averages[i], double{*steps[i].data_ptr<float>()}});
    }
    adam_step(parameters,
              {.lr = 1e-5, .weight_decay = 0.05, .gradient_factor = factor, .average_share = average ? 1e-4 : 0.0});
  }
};

template <class Step>
void measure_adam(benchmark::State& state, int64_t bytes, const Step& step) {
  AdamBench bench;
  for (auto _ : state) step(bench);
  state.SetBytesProcessed(state.iterations() * kMatrices * kElements * bytes);
}

void adam_ours(benchmark::State& state) {
  const bool average = state.range(0) != 0;
  measure_adam(state, average ? 40 : 32, [&](AdamBench& bench) { bench.ours(average); });
}
BENCHMARK(adam_ours)->ArgName("average")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void adam_torch_sequence(benchmark::State& state) {
  const bool average = state.range(0) != 0;
  measure_adam(state, average ? 40 : 32, [&](AdamBench& bench) { bench.torch_sequence(average); });
}
BENCHMARK(adam_torch_sequence)->ArgName("average")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void adam_torch_fused_alone(benchmark::State& state) {
  measure_adam(state, 28, [](AdamBench& bench) { bench.fused_adamw(); });
}
BENCHMARK(adam_torch_fused_alone)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace sparsight
