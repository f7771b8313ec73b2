#include "sparsight/models/prune_experts.h"

#include <gtest/gtest.h>

#include "sparsight/models/pruned_config.h"
#include "sparsight/train/run_config.h"
#include "tests/models/expert_columns.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::prune_experts_test {
namespace {

constexpr int64_t kGone = ExpertPlan::kRemoved;

// A ViT whose block 1 has experts. The first channel of the tokens that they get is nearly constant.
std::shared_ptr<ImageModel> small_vit(int64_t experts, const std::string& router, uint64_t seed = 1) {
  const Json resolved = resolve(Config::from_text(cat("[model]\nwidth = 8\ndepth = 2\nheads = 2\npatch = 4\n[moe]\n"
                                                      "blocks = [1]\nexperts = ",
                                                      experts, "\n[router]\n", router),
                                                  "test"),
                                config_sections());
  auto model = make_component(models(), resolved, "model", ModelContext{{1, 8, 8, 3}, read_moe_spec(resolved)});
  initialize(*model, seed);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : model->parameters()) p.mul_(10);  // so that the MLPs matter
  const at::Tensor head = model->named_parameters()["head.weight"];
  head.copy_(test::random_tensor(head.sizes(), 8, torch::kFloat));
  at::Tensor(model->named_parameters()["blocks.1.norm2.weight"]).fill_(1);
  at::Tensor(model->named_parameters()["blocks.1.norm2.bias"]).select(0, 0).fill_(50);
  return model;
}

const char* const kTopK = "name = \"softmax_topk\"\nk = 2\nrenormalize = true\n";

at::Tensor parameter(const ImageModel& model, const std::string& name) { return model.named_parameters()[name]; }

// No token chooses the expert.
void shut(const ImageModel& model, int64_t expert) {
  const torch::NoGradGuard no_grad;
  const at::Tensor row = parameter(model, "blocks.1.mlp.router.weight").select(0, expert);
  row.zero_();
  row.select(0, 0).fill_(-50);
}

void load_pruned(ImageModel& into, const ImageModel& from, const ExpertPruner& pruner) {
  LoadOptions strict;
  strict.strict = true;
  load_weights(into, pruner.prune(named_weights(from)), strict);
}

at::Tensor pixels(int64_t images) {
  return at::sigmoid(test::random_tensor({images, 1, 8, 8}, 9, torch::kFloat)).contiguous();
}

}  // namespace

TEST(PruneExperts, TheAnswersStayWithoutAnExpertThatNoTokenChooses) {
  const auto model = small_vit(4, kTopK);
  for (const int64_t expert : {0, 2}) shut(*model, expert);
  const ModelOutput before = model->forward({pixels(3)});
  const at::Tensor count = before.routings.at(0).chosen_count;
  ASSERT_EQ(count[0].item<int64_t>() + count[2].item<int64_t>(), 0);
  const ExpertPruner pruner(*model, {{"blocks.1.mlp", {{kGone, 1, kGone, 3}, {0, 5, 0, 5}}}});
  EXPECT_EQ(pruner.experts(), (std::map<std::string, int64_t>{{"blocks.1.mlp", 2}}));
  const auto pruned = small_vit(2, kTopK, 2);
  load_pruned(*pruned, *model, pruner);
  EXPECT_TRUE(test::near(pruned->forward({pixels(3)}).logits, before.logits, 1e-4));
  EXPECT_TRUE(keeps_answers(routed_layers(*model).at(0)));
  const at::Tensor w1 = parameter(*model, "blocks.1.mlp.experts.w1"),
                   kept = parameter(*pruned, "blocks.1.mlp.experts.w1");
  EXPECT_TRUE(at::equal(kept[0], w1[1]) && at::equal(kept[1], w1[3]));  // with their bits
}

// A softmax over all experts gives the others larger gates.
TEST(PruneExperts, AnExpertThatIsUsedOrSharesASoftmaxChangesTheAnswers) {
  const auto model = small_vit(3, kTopK);
  const at::Tensor before = model->forward({pixels(3)}).logits;
  const at::Tensor count = model->forward({pixels(3)}).routings.at(0).chosen_count;
  const int64_t busiest = count.argmax().item<int64_t>();
  ExpertPlan plan{{0, 1, 2}, {1, 1, 1}};
  plan.into[static_cast<size_t>(busiest)] = kGone;
  const auto pruned = small_vit(2, kTopK, 2);
  load_pruned(*pruned, *model, ExpertPruner(*model, {{"blocks.1.mlp", plan}}));
  EXPECT_FALSE(test::near(pruned->forward({pixels(3)}).logits, before, 1e-3));
  const std::string shares = "name = \"softmax_topk\"\nk = 1\n";
  const auto sharing = small_vit(3, shares);
  RoutedLayers layers = routed_layers(*sharing).at(0);
  EXPECT_FALSE(keeps_answers(layers));
  layers.gates = GateRule::sum_to_one;  // the ratios of gates stay
  EXPECT_TRUE(keeps_answers(layers));
}

// Expert 1 is expert 0 with its hidden units in another order, under the same row of the router: the mean of the two is
// the same function. Weights 3 and 1.
TEST(PruneExperts, MergingTheSameFunctionKeepsTheAnswers) {
  const auto model = small_vit(3, "name = \"softmax_topk\"\nk = 1\nrenormalize = true\n");
  {
    const torch::NoGradGuard no_grad;
    const int64_t hidden = parameter(*model, "blocks.1.mlp.experts.w1").size(2);
    const at::Tensor order = test::random_tensor({hidden}, 4).argsort();
    const auto copy = [&](const char* name, int64_t axis) {
      const at::Tensor all = parameter(*model, cat("blocks.1.mlp.experts.", name));
      all.select(0, 1).copy_(axis < 0 ? all[0] : all[0].index_select(axis, order));
    };
    copy("w1", 1), copy("b1", 0), copy("w2", 0), copy("b2", -1);
    const at::Tensor rows = parameter(*model, "blocks.1.mlp.router.weight");
    rows.select(0, 1).copy_(rows[0]);
  }
  const at::Tensor before = model->forward({pixels(3)}).logits;
  const ExpertPruner pruner(*model, {{"blocks.1.mlp", {{0, 0, 2}, {3, 1, 2}}}});
  const auto pruned = small_vit(2, "name = \"softmax_topk\"\nk = 1\nrenormalize = true\n", 2);
  load_pruned(*pruned, *model, pruner);
  EXPECT_TRUE(test::near(pruned->forward({pixels(3)}).logits, before, 1e-3));
}

// By hand: rows 0 and 2 of the router with weights 1 and 3 give (row 0 + 3 row 2) / 4. An expert of weight 0 leaves the
// other as it is; where both have 0, the one that stays does not change.
TEST(PruneExperts, RowsOfTheRouterAreMeansByLoad) {
  const auto model = small_vit(4, kTopK);
  const std::string name = "blocks.1.mlp.router.weight";
  const at::Tensor rows = parameter(*model, name).detach();
  const auto merged = [&](const ExpertPlan& plan) {
    return ExpertPruner(*model, {{"blocks.1.mlp", plan}}).prune({{name, rows}}).at(0).second;
  };
  const at::Tensor first = merged({{0, 1, 0, 3}, {1, 7, 3, 0}});
  EXPECT_TRUE(test::near(first[0], (rows[0] + 3 * rows[2]) / 4, 1e-6));
  EXPECT_TRUE(at::equal(first[1], rows[1]) && at::equal(first[2], rows[3]));
  EXPECT_TRUE(at::equal(merged({{0, 1, 1, 3}, {1, 2, 0, 1}})[1], rows[1]));
  EXPECT_TRUE(at::equal(merged({{0, 1, 1, 3}, {1, 0, 0, 1}})[1], rows[1]));
}

TEST(PruneExperts, TrainingStateFollowsItsParameter) {
  const auto model = small_vit(4, kTopK);
  const ExpertPruner pruner(*model, {{"blocks.1.mlp", {{0, kGone, 2, kGone}, {1, 1, 1, 1}}}});
  const at::Tensor w1 = parameter(*model, "blocks.1.mlp.experts.w1").detach(), step = at::full({}, 7.0F),
                   head = parameter(*model, "head.weight").detach();
  const NamedTensors state{{"ema/blocks.1.mlp.experts.w1", w1},
                           {"optimizer/blocks.1.mlp.experts.w1/exp_avg", w1 * 2},
                           {"optimizer/blocks.1.mlp.experts.w1/step", step},
                           {"optimizer/head.weight/exp_avg", head}};
  EXPECT_FALSE(pruner.find_foreign_shape(state));
  const NamedTensors pruned = pruner.prune(state);
  ASSERT_EQ(pruned.size(), 4U);
  for (size_t i = 0; i < state.size(); ++i) EXPECT_EQ(pruned[i].first, state[i].first);
  EXPECT_TRUE(at::equal(pruned[0].second, at::stack({w1[0], w1[2]})));
  EXPECT_TRUE(at::equal(pruned[1].second, at::stack({w1[0] * 2, w1[2] * 2})));
  EXPECT_TRUE(at::equal(pruned[2].second, step));
  EXPECT_TRUE(at::equal(pruned[3].second, head));
  EXPECT_EQ(pruner.find_foreign_shape({{"optimizer/blocks.1.mlp.experts.w1/row", at::zeros({4, 8})}}),
            "optimizer/blocks.1.mlp.experts.w1/row");
}

// Experts that are modules get new numbers, in all layers that follow the router.
TEST(PruneExperts, ColumnsOfWholeImagesLeaveEveryLayer) {
  for (const test::ColumnCase& c : test::column_cases()) {
    test::ColumnSettings three, two;
    two.experts = 2;
    three.router["renormalize"] = two.router["renormalize"] = true;
    three.router["k"] = two.router["k"] = 1;
    const auto model = test::column_model(c, &three, 1), pruned = test::column_model(c, &two, 2);
    const RoutedLayers routed = routed_layers(*model).at(0);
    EXPECT_EQ(routed.routing, "router");
    EXPECT_EQ(routed.layers.size(), c.blocks.size()) << c.model;
    const at::Tensor images = test::column_images(4);
    {
      const torch::NoGradGuard no_grad;  // equal logits: the first of both is chosen
      const at::Tensor rows = parameter(*model, "router.weight");
      rows.select(0, 1).copy_(rows[0]);
    }
    const at::Tensor before = model->forward({images}).logits;
    const ExpertPruner pruner(*model, {{"router", {{0, kGone, 2}, {1, 0, 1}}}});
    load_pruned(*pruned, *model, pruner);
    EXPECT_TRUE(test::near(pruned->forward({images}).logits, before, 1e-3 * before.abs().max().item<double>()))
        << c.model;
    EXPECT_EQ(testing::error_text([&] { check_removal(routed, /*merges=*/false); }), "");
    EXPECT_NE(testing::error_text([&] { check_removal(routed, /*merges=*/true); }).find("leave out --merge"),
              std::string::npos);
  }
}

TEST(PruneExperts, RoutersWithoutRowsRefuseInOneLine) {
  for (const std::string name : {"hash", "random", "round_robin", "soft_moe", "hierarchical"}) {
    const auto model = small_vit(4, "name = \"" + name + "\"\n");
    const std::string error = testing::error_text([&] { check_removal(routed_layers(*model).at(0), false); });
    EXPECT_NE(error.find("no expert of blocks.1.mlp can be removed: its router " + name), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

}  // namespace sparsight::prune_experts_test
