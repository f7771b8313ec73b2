// The softmax of a router's logits [N,E] and its gradient, ours and torch's.
#include <benchmark/benchmark.h>
#include <torch/types.h>

#include "sparsight/ops/softmax_rows.h"

namespace sparsight {
namespace {

at::Tensor torch_softmax(const at::Tensor& x) { return at::softmax(x, 1); }

using Softmax = at::Tensor (*)(const at::Tensor& x);

template <Softmax softmax>
void bench_softmax(benchmark::State& state) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({state.range(0), state.range(1)});
  for (auto _ : state) benchmark::DoNotOptimize(softmax(x).const_data_ptr<float>());
}

template <Softmax softmax>
void bench_softmax_gradient(benchmark::State& state) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({state.range(0), state.range(1)}).requires_grad_(true);
  const at::Tensor upstream = torch::randn(x.sizes());
  for (auto _ : state) {
    x.mutable_grad() = at::Tensor();
    softmax(x).backward(upstream);
    benchmark::DoNotOptimize(x.grad().const_data_ptr<float>());
  }
}

void router_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"tokens", "experts"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  bench->Args({50, 8})->Args({1576, 8})->Args({6304, 32});
}

BENCHMARK(bench_softmax<softmax_rows>)->Name("router_softmax")->Apply(router_sizes);
BENCHMARK(bench_softmax<torch_softmax>)->Name("router_softmax_torch")->Apply(router_sizes);
BENCHMARK(bench_softmax_gradient<softmax_rows>)->Name("router_softmax_gradient")->Apply(router_sizes);
BENCHMARK(bench_softmax_gradient<torch_softmax>)->Name("router_softmax_gradient_torch")->Apply(router_sizes);

}  // namespace
}  // namespace sparsight
