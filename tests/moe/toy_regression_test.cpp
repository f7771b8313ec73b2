// A layer learns a task that has parts: does its load stay balanced?
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"
#include "tests/support/random_tensor.h"

namespace sparsight::toy_regression_test {

class ToyRegression : public ::testing::TestWithParam<at::ScalarType> {};

// Six Gaussian clusters, each with a linear map of its own to learn: with both losses the load stays balanced, without
// them it does not.
TEST_P(ToyRegression, S44_TheLossesBalanceIt) {
  const auto type = GetParam();
  constexpr int64_t kClusters = 6, kSide = 8, kBatch = 256, kSteps = 1500;
  const at::Tensor centres = 2 * test::random_tensor({kClusters, kSide}, 1, torch::kFloat);
  const at::Tensor maps = test::random_tensor({kClusters, kSide, kSide}, 2, torch::kFloat) / std::sqrt(8.f);
  const auto cv_load = [&](double weight) {
    MoeSpec spec = read_moe_spec({{"moe", {{"experts", 8}, {"hidden", 16}}},
                                  {"experts", {{"name", "mlp"}, {"activation", "relu"}, {"init", "fan_in"}}},
                                  {"losses", {{"importance", weight}, {"load", weight}}},
                                  {"router", {{"name", "noisy_topk"}, {"k", 2}}}});
    MoeLayer layer(spec, {"moe", kSide, 16});
    initialize(layer, 1);
    layer.to(type);
    torch::optim::Adam adam(layer.parameters(), torch::optim::AdamOptions(0.005));
    double sum = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto seed = static_cast<uint64_t>(1000 + step);
      const at::Tensor cluster = (uniform_like(centres, {kBatch}, RandomStream(seed, "cluster")) * kClusters)
                                     .floor()
                                     .clamp_max(kClusters - 1)
                                     .to(torch::kLong);
      const at::Tensor x =
          (centres.index_select(0, cluster) + 0.5 * test::random_tensor({kBatch, kSide}, seed, torch::kFloat)).to(type);
      const at::Tensor target = torch::bmm(x.unsqueeze(1), maps.index_select(0, cluster).to(type)).squeeze(1);
      const MoeOutput out =
          layer.forward({x, {1, kBatch, 0, 0, 0}, ForwardMode::training(), {3, static_cast<uint64_t>(step)}});
      at::Tensor loss = (out.tokens - target).square().mean();
      for (const NamedLoss& aux : out.routing.losses) loss = loss + aux.weight * aux.value;
      adam.zero_grad();
      loss.backward();
      adam.step();
      if (step >= kSteps - 100) sum += routing_stats(out.routing).cv_load / 100;
    }
    return sum;
  };
  const double with = cv_load(0.1), without = cv_load(0);
  EXPECT_LT(with, 0.2);
  EXPECT_GT(without, 2 * with);
  RecordProperty("cv_load", cat(with, " with the losses, ", without, " without"));
  std::cout << "CV(Load) " << with << " with the losses, " << without << " without\n";
}

INSTANTIATE_TEST_SUITE_P(Types, ToyRegression, ::testing::Values(torch::kFloat, torch::kDouble));

}  // namespace sparsight::toy_regression_test
