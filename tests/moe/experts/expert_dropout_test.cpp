#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::expert_dropout_test {
namespace {

constexpr int64_t kTokens = 24, kWidth = 8, kPerImage = 6;

std::shared_ptr<MoeLayer> make_layer(double dropout, const std::string& router = "softmax_topk", int64_t depth = 1) {
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", 4}, {"hidden", 16}, {"shared", 2}}},
                                      {"experts", {{"name", "mlp"}, {"dropout", dropout}, {"depth", depth}}},
                                      {"losses", Json::object()},
                                      {"router", {{"name", router}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 16});
  initialize(*layer, 1);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters()) p.value().add_(test::random_tensor(p.value().sizes(), 5) * 0.2);
  layer->to(torch::kDouble);
  return layer;
}

at::Tensor tokens() { return test::random_tensor({kTokens, kWidth}, 3); }

at::Tensor run(MoeLayer& layer, uint64_t step, int64_t first = 0, int64_t count = kTokens,
               const ForwardMode& mode = ForwardMode::training()) {
  const int64_t images = count / kPerImage;
  RoutingContext context;
  context.image = torch::arange(first / kPerImage, first / kPerImage + images, torch::kLong);
  return layer.forward({tokens().narrow(0, first, count), {images, kPerImage, 0, 0, 0}, mode, {1, step}, context})
      .tokens;
}

}  // namespace

// One expert of identities without biases: what comes out of rows of ones is the mask, 0 or 1 / (1 - 0.75).
TEST(ExpertDropout, ZeroesAndScalesTheHiddenUnitsByTheNumberOfTheRow) {
  MlpExpertsOptions options;
  options.activation = "relu";
  options.bias = false;
  options.dropout = 0.75;
  MlpExperts experts(options, {1, 400, 400});
  for (at::Tensor& p : experts.parameters()) p.set_data(torch::eye(400).unsqueeze(0));
  const at::Tensor rows = torch::ones({3, 400}), offsets = torch::tensor({0, 3}, torch::kLong);
  const RowContext context{ForwardMode::training(), {1, 2}, "moe.experts", torch::tensor({4, 0, 9}, torch::kLong)};
  const at::Tensor y = experts.forward(rows, offsets, context).detach();
  EXPECT_TRUE(((y == 0) | (y == 4)).all().item<bool>());
  EXPECT_NEAR((y > 0).to(torch::kDouble).mean().item<double>(), 0.25, 4 * std::sqrt(0.25 * 0.75 / 1200));
  const at::Tensor all = keep_mask_like(rows, {10, 400}, 0.25, context.random.stream("moe.experts.dropout1"));
  EXPECT_TRUE(torch::equal(y, all.index_select(0, context.number)));
  EXPECT_TRUE(torch::equal(experts.forward(rows, offsets), rows));  // no random stream given
}

TEST(ExpertDropout, IsOnInTrainingAloneForRoutedSharedAndSoftExperts) {
  for (const std::string router : {"softmax_topk", "soft_moe"})
    for (const int64_t depth : {1, 3}) {
      auto with = make_layer(0.1, router, depth), without = make_layer(0, router, depth);
      EXPECT_TRUE(torch::equal(run(*with, 1), run(*with, 1)));
      EXPECT_FALSE(torch::equal(run(*with, 1), run(*with, 2)));
      EXPECT_FALSE(torch::equal(run(*with, 1), run(*without, 1)));
      const auto evaluated = [](MoeLayer& layer) { return run(layer, 1, 0, kTokens, ForwardMode::evaluation()); };
      EXPECT_TRUE(torch::equal(evaluated(*with), evaluated(*without)));
    }
}

TEST(ExpertDropout, S33_DoesNotDependOnHowABatchIsSplit) {
  for (const std::string router : {"softmax_topk", "soft_moe"}) {
    auto layer = make_layer(0.3, router);
    const at::Tensor whole = run(*layer, 1);
    const at::Tensor parts = at::cat({run(*layer, 1, 0, 12), run(*layer, 1, 12, 6), run(*layer, 1, 18, 6)});
    EXPECT_TRUE(test::near(parts, whole, 1e-12)) << router;
  }
}

}  // namespace sparsight::expert_dropout_test
