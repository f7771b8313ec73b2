// Dense layers of a ViT-S on the kernels of ops/ and on ATen (MKL): a projection and an MLP, forward and with the
// gradients of input and weights. The argument is the number of rows (tokens); `multiply_adds` is their rate.
#include <benchmark/benchmark.h>

#include <ATen/ATen.h>
#include <torch/types.h>

#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight {
namespace {

constexpr int64_t kDenseWidth = 384, kDenseHidden = 1536;

using DenseMap = at::Tensor (*)(const at::Tensor& x, const std::vector<at::Tensor>& weights);

at::Tensor aten_linear(const at::Tensor& x, const std::vector<at::Tensor>& w) { return at::linear(x, w[0], w[1]); }
at::Tensor our_linear(const at::Tensor& x, const std::vector<at::Tensor>& w) {
  return grouped_linear(x, one_group(x), w[0].t().unsqueeze(0), w[1].unsqueeze(0));
}
at::Tensor aten_mlp(const at::Tensor& x, const std::vector<at::Tensor>& w) {
  return at::linear(at::gelu(at::linear(x, w[0], w[1])), w[2], w[3]);
}
at::Tensor our_mlp(const at::Tensor& x, const std::vector<at::Tensor>& w) {
  return expert_mlp(x, rows_in_place(x, one_group(x)),
                    {w[0].t().unsqueeze(0), w[1].unsqueeze(0), w[2].t().unsqueeze(0), w[3].unsqueeze(0)}, {});
}

// transposed: the memory of weights is [in,out]
void run_dense(benchmark::State& state, DenseMap map, const std::vector<int64_t>& widths, bool transposed,
               bool backward) {
  const at::Tensor x = at::randn({state.range(0), widths[0]}).requires_grad_(backward);
  std::vector<at::Tensor> weights;
  double multiply_adds = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const at::Tensor weight = at::randn({widths[i + 1], widths[i]}) * 0.05;
    weights.push_back((transposed ? weight.t().contiguous().t() : weight).detach().requires_grad_(backward));
    weights.push_back(at::randn({widths[i + 1]}).requires_grad_(backward));
    multiply_adds += static_cast<double>(state.range(0) * widths[i] * widths[i + 1]) * (backward ? 3 : 1);
  }
  const at::AutoGradMode gradients(backward);
  const at::Tensor grad = at::randn({state.range(0), widths.back()});
  for (auto _ : state) {
    const at::Tensor y = map(x, weights);
    if (!backward) continue;
    y.backward(grad);
    x.mutable_grad().reset();
    for (at::Tensor& w : weights) w.mutable_grad().reset();
  }
  state.counters["multiply_adds"] =
      benchmark::Counter(multiply_adds, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

const std::vector<int64_t> kQkv = {kDenseWidth, 3 * kDenseWidth}, kMlp = {kDenseWidth, kDenseHidden, kDenseWidth};

#define DENSE_BENCH(name, ...)                    \
  BENCHMARK_CAPTURE(run_dense, name, __VA_ARGS__) \
      ->Arg(50)                                   \
      ->Arg(197)                                  \
      ->Arg(3152)                                 \
      ->UseRealTime()                             \
      ->Unit(benchmark::kMicrosecond)
DENSE_BENCH(dense_qkv_aten, aten_linear, kQkv, false, false);
DENSE_BENCH(dense_qkv_ours, our_linear, kQkv, false, false);
DENSE_BENCH(dense_qkv_ours_t, our_linear, kQkv, true, false);
DENSE_BENCH(dense_qkv_train_aten, aten_linear, kQkv, false, true);
DENSE_BENCH(dense_qkv_train_ours, our_linear, kQkv, false, true);
DENSE_BENCH(dense_qkv_train_ours_t, our_linear, kQkv, true, true);
DENSE_BENCH(dense_mlp_aten, aten_mlp, kMlp, false, false);
DENSE_BENCH(dense_mlp_ours, our_mlp, kMlp, false, false);
DENSE_BENCH(dense_mlp_ours_t, our_mlp, kMlp, true, false);
DENSE_BENCH(dense_mlp_train_aten, aten_mlp, kMlp, false, true);
DENSE_BENCH(dense_mlp_train_ours, our_mlp, kMlp, false, true);
DENSE_BENCH(dense_mlp_train_ours_t, our_mlp, kMlp, true, true);

}  // namespace
}  // namespace sparsight
