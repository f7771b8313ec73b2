// Everything registered declares its cost. The check itself is tested with components that do not.
#include <gtest/gtest.h>

#include "sparsight/models/register_models.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/linear.h"
#include "tests/support/cost_coverage.h"
#include "tests/support/random_tensor.h"

namespace sparsight::cost_coverage_test {
namespace {

constexpr int64_t kImages = 4, kPerImage = 10, kWidth = 8, kExperts = 4;
constexpr TokenLayout kLayout{kImages, kPerImage, 1, 3, 3};

double rows_routed(Router& router) {
  const at::Tensor tokens = test::random_tensor({kImages * kPerImage, kWidth}, 3, torch::kFloat);
  const Routing routing = router.route({tokens, kLayout, "moe", ForwardMode::training(), {1, 2}});
  if (routing.soft) return static_cast<double>(routing.soft->experts * routing.soft->slots);
  return static_cast<double>(routing.token.size(0)) / static_cast<double>(kImages);
}

std::string complaint(Router& router, const std::string& name) {
  initialize(router, 1);
  return test::router_complaint(router.cost(kLayout), router, rows_routed(router), name);
}

const auto test_name = [](const auto& info) { return info.param; };

// Chooses the two largest scores; declares no cost, or too little.
class SilentRouter : public Router {
 public:
  explicit SilentRouter(std::optional<RouterCost> declared = {})
      : weight(register_parameter("weight", torch::ones({kExperts, kWidth}))), declared_(std::move(declared)) {}
  RouterCost cost(const TokenLayout& layout) const override { return declared_ ? *declared_ : Router::cost(layout); }

  at::Tensor weight;

 protected:
  Routing choose(const RouterInput& input) override {
    Routing routing;
    routing.tokens = input.tokens.size(0);
    routing.experts = kExperts;
    routing.scores = at::softmax(input.tokens.matmul(weight.t()), 1);
    const auto [gate, expert] = routing.scores.topk(2, 1);
    choose_per_token(routing, expert, gate);
    finish_routing(routing);
    return routing;
  }

 private:
  std::optional<RouterCost> declared_;
};

class SilentExperts : public Experts {
 public:
  SilentExperts()
      : w(register_parameter("w", torch::ones({kExperts, kWidth, kWidth}))),
        b(register_parameter("b", torch::ones({kExperts, kWidth}))) {}

  at::Tensor w, b;

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor&, const RowContext&) override { return rows; }
};

class SilentModel : public ImageModel {
 public:
  SilentModel() : ImageModel({3, 2, 2, 5}), head(register_module("head", Linear(12, 5))) {}
  at::Tensor classify(const at::Tensor& features) override { return head->forward(features); }

  Linear head;

 protected:
  ModelOutput run(const ModelInput& input) override {
    ModelOutput out;
    out.features = input.images.flatten(1);
    return out;
  }
};

}  // namespace

class CostOfRouter : public ::testing::TestWithParam<std::string> {};

TEST_P(CostOfRouter, IsDeclared) {
  const auto router = routers().make(GetParam(), Json::object(), "router", RouterShape{kWidth, kExperts});
  EXPECT_EQ(complaint(*router, GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Registry, CostOfRouter, ::testing::ValuesIn(routers().names()), test_name);

class CostOfExperts : public ::testing::TestWithParam<std::string> {};

TEST_P(CostOfExperts, IsDeclared) {
  const auto experts = expert_kinds().make(GetParam(), Json::object(), "experts", ExpertShape{kExperts, kWidth, 12});
  const Cost one = experts->cost({kExperts, kPerImage, 20, 2, 4}),
             twice = experts->cost({kExperts, kPerImage, 40, 2, 4});
  EXPECT_EQ(test::cost_complaint(one, *experts, GetParam()), "");
  EXPECT_GT(one.multiply_adds, 0);
  EXPECT_EQ(twice.parameters, one.parameters);
  EXPECT_GE(twice.multiply_adds, one.multiply_adds);
}

INSTANTIATE_TEST_SUITE_P(Registry, CostOfExperts, ::testing::ValuesIn(expert_kinds().names()), test_name);

class CostOfModel : public ::testing::TestWithParam<std::string> {};

TEST_P(CostOfModel, IsDeclaredPartByPart) {
  for (const bool with_moe : {false, true}) {
    const ModelContext context{{3, 16, 16, 5},
                               default_moe_spec(with_moe ? std::vector<int64_t>{-1} : std::vector<int64_t>{})};
    const auto model = models().make(GetParam(), Json::object(), "model", context);
    EXPECT_EQ(test::model_complaint(*model, GetParam()), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, CostOfModel, ::testing::ValuesIn(models().names()), test_name);

TEST(CostCoverage, ComplainsOfARouterThatDeclaresNothingOrSomethingWrong) {
  SilentRouter silent;
  EXPECT_EQ(complaint(silent, "mine"), "mine declares no cost: override cost()");
  RouterCost declared = token_choice_cost(router_cost(kWidth, kExperts), 2, kLayout);
  SilentRouter right(declared);
  EXPECT_EQ(complaint(right, "mine"), "");
  RouterCost fewer = declared;
  fewer.rows = 10;
  SilentRouter one_expert(fewer);
  EXPECT_EQ(complaint(one_expert, "mine"), "mine says that it makes 10 assignments of an image, but makes 20");
  RouterCost smaller = declared;
  smaller.cost.parameters = smaller.cost.active_parameters = 31;
  SilentRouter lost_weight(smaller);
  EXPECT_EQ(complaint(lost_weight, "mine"), "mine says that it has 31 parameters, but has 32");
}

// The documented default: parameters are right, the weight is a linear map of each token, `k` experts or one.
TEST(CostCoverage, ARouterThatDeclaresNothingIsCountedByItsParameters) {
  SilentRouter silent;
  EXPECT_EQ(silent.cost(kLayout).rows, 10);
  silent.assume_choices(2);
  const RouterCost cost = silent.cost(kLayout);
  EXPECT_EQ(cost.cost.parameters, 32);
  EXPECT_EQ(cost.cost.multiply_adds, 10 * 32);
  EXPECT_EQ(cost.rows, 20);
  EXPECT_EQ(cost.active, 2);
  EXPECT_TRUE(cost.cost.assumed);
}

// In a layer made from a configuration the setting is known: the default of a registered router, called by itself.
TEST(CostCoverage, TheSettingKOfSuchARouterCounts) {
  const auto rows = [](const Json& settings) {
    const MoeSpec spec =
        read_moe_spec({{"moe", {{"experts", kExperts}}}, {"losses", Json::object()}, {"router", settings}});
    return spec.make_router({kWidth, kExperts})->Router::cost(kLayout).rows;
  };
  EXPECT_EQ(rows({{"name", "softmax_topk"}}), 20);
  EXPECT_EQ(rows({{"name", "softmax_topk"}, {"k", 3}}), 30);
  EXPECT_EQ(rows({{"name", "expert_choice"}}), 10);  // which has no k
}

TEST(CostCoverage, ComplainsOfExpertsThatDeclareNothing) {
  SilentExperts silent;
  const Cost cost = silent.cost({kExperts, kPerImage, 20, 2, 4});
  EXPECT_EQ(test::cost_complaint(cost, silent, "mine"), "mine declares no cost: override cost()");
  // One expert: 64 products and 72 parameters.
  EXPECT_EQ(cost.multiply_adds, 20 * 64);
  EXPECT_EQ(cost.parameters, 4 * 72);
  EXPECT_EQ(cost.active_parameters, 2 * 72);
  EXPECT_EQ(cost.weight_bytes, 4 * 4 * 72);
}

TEST(CostCoverage, ComplainsOfAModelThatDeclaresNothing) {
  SilentModel silent;
  EXPECT_EQ(test::model_complaint(silent, "mine"), "mine declares no cost: override cost()");
  const std::vector<PartCost> parts = silent.cost({});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].part, "head");
  EXPECT_EQ(parts[0].cost.parameters, 65);
  EXPECT_EQ(parts[0].cost.multiply_adds, 60);
}

}  // namespace sparsight::cost_coverage_test
