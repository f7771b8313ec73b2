#include "sparsight/models/engine_rates.h"

#include <algorithm>
#include <limits>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/machine.h"
#include "sparsight/cost/part_cost.h"
#include "sparsight/data/one_compute_thread.h"
#include "sparsight/models/vit_block.h"
#include "sparsight/nn/onednn_linear.h"
#include "sparsight/nn/resnet_block.h"

namespace sparsight {
namespace {

constexpr int kTurns = 8;
constexpr int64_t kImages = 4, kTokens = 50, kWidth = 384, kMaps = 8, kChannels = 64, kSide = 16;
constexpr double kTrainingPasses = 3;  // forward, and two products of the backward pass for each of its own

// GFLOP/s of `run`, which does `operations`, on each engine. The first turn warms up.
template <class Run>
EngineRate rate_of(double operations, const Run& run) {
  constexpr double kNever = std::numeric_limits<double>::max();
  double kernels = kNever, onednn = kNever;
  const auto time = [&](Engine engine, double& best, bool counts) {
    const EngineScope scope(all_on(engine));
    const double begin = thread_seconds();
    run();
    if (counts) best = std::min(best, thread_seconds() - begin);
  };
  for (int turn = 0; turn <= kTurns; ++turn) {
    time(Engine::kernels, kernels, turn > 0);
    if (has_onednn()) time(Engine::onednn, onednn, turn > 0);
  }
  return {1e-9 * operations / kernels, has_onednn() ? 1e-9 * operations / onednn : 0};
}

double operations_of(const std::vector<PartCost>& parts) { return 2 * static_cast<double>(total(parts).multiply_adds); }

}  // namespace

EngineRates measure_engine_rates() {
  const OneComputeThread one_thread;
  const TokenLayout layout{.images = kImages, .per_image = kTokens};
  VitBlock block({.attention = {.width = kWidth, .heads = kWidth / 64}, .mlp_hidden = 4 * kWidth}, nullptr);
  initialize(block, 1);
  const at::Tensor tokens = at::rand({kImages, kTokens, kWidth});
  const double of_block = kImages * operations_of(block.cost(layout, {}, nullptr, kTokens));
  const auto forward = [&](const at::Tensor& x) {
    ModelOutput out;
    return block.forward(x, layout, {}, out, kTokens);
  };
  const auto train = [&] {
    const at::AutoGradMode gradients(true);
    const at::Tensor y = forward(tokens.detach().requires_grad_());
    block.zero_grad();
    y.backward(at::ones_like(y));
  };
  EngineRates rates;
  rates[static_cast<size_t>(EngineUse::linear_training)] = rate_of(kTrainingPasses * of_block, train);

  const at::NoGradGuard no_grad;
  block.pack(WeightType::fp32);
  rates[static_cast<size_t>(EngineUse::linear_inference)] = rate_of(of_block, [&] { forward(tokens); });

  ResnetBlock convs({.in = kChannels, .width = kChannels});
  initialize(convs, 1);
  convs.pack(WeightType::fp32);
  const at::Tensor maps = at::rand({kMaps, kChannels, kSide, kSide});
  MapSize size{kSide, kSide};
  rates[static_cast<size_t>(EngineUse::conv_inference)] =
      rate_of(kMaps * operations_of(convs.cost("", size)), [&] { convs.forward(maps, /*batch_statistics=*/false); });
  return rates;
}

}  // namespace sparsight
