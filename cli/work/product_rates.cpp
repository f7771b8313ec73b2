#include "cli/work/product_rates.h"

#include <algorithm>
#include <chrono>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>

#include "sparsight/kernels/kernels.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight::cli {
namespace {

constexpr int64_t kRows = 1024, kWidth = 768;
constexpr int kRuns = 6;

template <class Multiply>
double gigaflops(const Multiply& multiply) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    multiply();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return 2e-9 * kRows * kWidth * kWidth / best;
}

}  // namespace

ProductRates measure_products() {
  const at::NoGradGuard no_grad;
  const at::Tensor rows = at::ones({kRows, kWidth}), weight = at::ones({kWidth, kWidth}), group = one_group(rows);
  const auto with = [&](ProductType type) {
    const ProductScope products(type);
    return gigaflops([&] { grouped_linear(rows, group, weight.t().unsqueeze(0)); });
  };
  ProductRates rates;
  rates.ours = with(ProductType::fp32);
  if (cpu::kernels().multiplies_bf16) rates.ours_bf16 = with(ProductType::bf16);
  rates.torch = gigaflops([&] { at::linear(rows, weight); });
  return rates;
}

}  // namespace sparsight::cli
