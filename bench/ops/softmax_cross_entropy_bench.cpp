// The loss of a batch of logits [B,K] and its gradient, ours and torch's.
#include <benchmark/benchmark.h>
#include <torch/types.h>

#include "sparsight/ops/softmax_cross_entropy.h"

namespace sparsight {
namespace {

at::Tensor mean_loss(const at::Tensor& logits, const at::Tensor& labels) {
  return softmax_cross_entropy(logits, labels).mean();
}
at::Tensor mean_loss_torch(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels);
}

using MeanLoss = at::Tensor (*)(const at::Tensor& logits, const at::Tensor& labels);

template <MeanLoss loss>
void bench_cross_entropy(benchmark::State& state) {
  torch::manual_seed(1);
  const at::Tensor logits = torch::randn({state.range(0), state.range(1)}).requires_grad_(true);
  const at::Tensor labels = torch::randint(state.range(1), {state.range(0)}, torch::kLong);
  for (auto _ : state) {
    logits.mutable_grad() = at::Tensor();
    loss(logits, labels).backward();
    benchmark::DoNotOptimize(logits.grad().const_data_ptr<float>());
  }
}

void logit_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "classes"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  bench->Args({512, 1000})->Args({128, 100})->Args({128, 10});
}

BENCHMARK(bench_cross_entropy<mean_loss>)->Name("cross_entropy")->Apply(logit_sizes);
BENCHMARK(bench_cross_entropy<mean_loss_torch>)->Name("cross_entropy_torch")->Apply(logit_sizes);

}  // namespace
}  // namespace sparsight
