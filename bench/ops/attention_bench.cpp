// Attention between the projections, ours and torch's fused one with the permutes that it needs: multiply-adds per
// second, forward and with the backward pass (which computes 5 products of the size of the forward pass's 2).
#include <benchmark/benchmark.h>
#include <torch/types.h>

#include "sparsight/ops/attention.h"

namespace sparsight {
namespace {

// qkv: [B,S,3D]. Returns [B,S,D].
at::Tensor torch_attention(const at::Tensor& qkv, int64_t heads) {
  const int64_t images = qkv.size(0), tokens = qkv.size(1), width = qkv.size(2) / 3;
  const at::Tensor parts = qkv.view({images, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  return at::scaled_dot_product_attention(parts[0], parts[1], parts[2])
      .transpose(1, 2)
      .reshape({images, tokens, width});
}

at::Tensor our_attention(const at::Tensor& qkv, int64_t heads) { return attention(qkv, heads); }

using Attend = at::Tensor (*)(const at::Tensor& qkv, int64_t heads);

template <Attend attend, bool kBackward>
void bench_attention(benchmark::State& state) {
  const int64_t images = state.range(0), heads = state.range(1), tokens = state.range(2), size = state.range(3);
  torch::manual_seed(1);
  const at::Tensor qkv = torch::randn({images, tokens, 3 * heads * size}).requires_grad_(kBackward);
  const at::Tensor grad = torch::randn({images, tokens, heads * size});
  const at::AutoGradMode mode(kBackward);
  for (auto _ : state) {
    const at::Tensor out = attend(qkv, heads);
    if constexpr (kBackward) {
      qkv.mutable_grad() = at::Tensor();
      out.backward(grad);
    }
    benchmark::DoNotOptimize(out.const_data_ptr<float>());
  }
  const auto product = static_cast<double>(images * heads * tokens * tokens * size);
  state.counters["multiply-adds/s"] =
      benchmark::Counter((kBackward ? 7 : 2) * product, benchmark::Counter::kIsIterationInvariantRate);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"images", "heads", "tokens", "size"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  bench->Args({16, 6, 197, 64})->Args({32, 6, 50, 64})->Args({1, 6, 50, 64});
}

BENCHMARK(bench_attention<our_attention, false>)->Name("attention")->Apply(sizes);
BENCHMARK(bench_attention<torch_attention, false>)->Name("attention_torch")->Apply(sizes);
BENCHMARK(bench_attention<our_attention, true>)->Name("attention_backward")->Apply(sizes);
BENCHMARK(bench_attention<torch_attention, true>)->Name("attention_backward_torch")->Apply(sizes);

}  // namespace
}  // namespace sparsight
