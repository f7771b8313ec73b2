// [capacity] group and group_unit: how many rows an expert takes of each group, and the losses that are means over
// groups, through the layer.
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/near.h"

namespace sparsight::capacity_groups_test {
namespace {

using test::near;

constexpr TokenLayout kLayout{5, 2, 0, 0, 0};  // 5 images of 2 tokens

// Two experts, whose logits are the tokens themselves, one choice and a factor of 1: of S tokens an expert takes S / 2.
std::shared_ptr<MoeLayer> build_layer(at::ScalarType type, int64_t group, const std::string& unit) {
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", 2}}},
                                      {"router", {{"name", "softmax_topk"}, {"k", 1}, {"noise", 0}}},
                                      {"capacity", {{"factor", 1}, {"group", group}, {"group_unit", unit}}},
                                      {"losses", {{"vmoe_importance", 1}, {"vmoe_load", 0}, {"switch", 1}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", 2, 3});
  initialize(*layer, 1);
  layer->to(type);
  const torch::NoGradGuard no_grad;
  layer->router().named_parameters()["weight"].copy_(torch::eye(2));
  return layer;
}

double loss_named(const std::string& name, const MoeOutput& out) {
  for (const NamedLoss& loss : out.routing.losses)
    if (loss.name == name) return loss.value.item<double>();
  return NAN;
}

struct Case {
  int64_t group;
  std::string unit;
  std::vector<int64_t> capacity;
  int64_t dropped;  // the one token that finds its expert full
  double switch_loss, vmoe_importance;
};

}  // namespace

namespace {

// [N]: the group of each token of 5 images of 2 tokens; all 0 where there is one group.
std::vector<int64_t> token_groups(const CapacityOptions& options, const at::Tensor& image, const at::Tensor& group) {
  Routing routing;
  routing.layout = kLayout;
  routing.tokens = kLayout.images * kLayout.per_image;
  routing.expert = torch::zeros({0}, torch::kLong);
  set_capacity_groups(routing, options, image, group);
  const at::Tensor of_token = group_of_token(routing).contiguous();
  EXPECT_EQ(routing.group_count, of_token.max().item<int64_t>() + 1);
  return {of_token.data_ptr<int64_t>(), of_token.data_ptr<int64_t>() + of_token.numel()};
}

}  // namespace

TEST(CapacityGroupsOfImages, FollowTheirNumbersOrAreGiven) {
  using Groups = std::vector<int64_t>;
  const auto numbers = [](std::vector<int64_t> of_images) { return torch::tensor(of_images, torch::kLong); };
  CapacityOptions options;
  EXPECT_EQ(token_groups(options, {}, {}), Groups(10, 0));  // the whole batch
  options.group = 3;
  EXPECT_EQ(token_groups(options, {}, {}), (Groups{0, 0, 0, 0, 0, 0, 1, 1, 1, 1}));
  // Images 0 1 2 | 3 4 5 | 6 7 8: what is left of a batch after some images were taken out.
  EXPECT_EQ(token_groups(options, numbers({0, 2, 3, 6, 8}), {}), (Groups{0, 0, 0, 0, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(token_groups(options, numbers({8, 0, 3, 6, 2}), {}), (Groups{2, 2, 0, 0, 1, 1, 2, 2, 0, 0}));
  options.group_unit = "tokens";
  EXPECT_EQ(token_groups(options, {}, {}), (Groups{0, 0, 0, 1, 1, 1, 2, 2, 2, 3}));
  // Tokens 4 5 8 9 0 1 2 3 6 7 of images 2 4 0 1 3, in threes.
  EXPECT_EQ(token_groups(options, numbers({2, 4, 0, 1, 3}), {}), (Groups{1, 1, 2, 3, 0, 0, 0, 1, 2, 2}));
  // Given groups override the options.
  EXPECT_EQ(token_groups(options, {}, numbers({7, 7, 1, 7, 1})), (Groups{1, 1, 1, 1, 0, 0, 1, 1, 0, 0}));
  options.group = 0;
  EXPECT_EQ(token_groups(options, {}, numbers({7, 7, 1, 7, 1})), (Groups{1, 1, 1, 1, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(token_groups(options, {}, numbers({7, 7, 7, 7, 7})), Groups(10, 0));
}

class CapacityGroups : public ::testing::TestWithParam<at::ScalarType> {};

// Tokens choose the experts 0 0 0 1 0 1 1 1 0 0 with probability 3/4 (a logit of ln 3). In a group of S tokens, n of
// them for expert 0 and m for expert 1, the mean probabilities are (3n + m) / 4S and (n + 3m) / 4S:
//   switch           2 (n (3n + m) + m (n + 3m)) / 4S² = (3 (n² + m²) + 2nm) / 2S²
//   vmoe_importance  ((n - m) / 2S)²
// 3 tokens: (n,m) = (3,0) (1,2) (1,2)* (1,0): switch 3/2 19/18 19/18 3/2, importance 1/4 1/36 1/36 1/4
// 3 images: (4,2) (2,2): 19/18 and 1, 1/36 and 0
// all:      (6,4): (3 * 52 + 48) / 200 = 1.02, (2/20)² = .01
// * experts 1 1 0: n and m enter alike. Full experts drop token 2, the third of the first three for expert 0; token 4,
// its fourth of the first six; token 9, its sixth of ten.
TEST_P(CapacityGroups, TokensAndImagesMakeTheGroupsOfBuffersAndLosses) {
  const std::vector<Case> cases{
      {3, "tokens", {2, 2, 2, 1}, 2, (1.5 + 19. / 18 + 19. / 18 + 1.5) / 4, (.25 + 1. / 36 + 1. / 36 + .25) / 4},
      {3, "images", {3, 2}, 4, (19. / 18 + 1) / 2, (1. / 36) / 2},
      {0, "tokens", {5}, 9, 1.02, .01},
      {0, "images", {5}, 9, 1.02, .01},
  };
  const double tol = GetParam() == torch::kDouble ? 1e-12 : 1e-6;
  const at::Tensor chosen = torch::tensor({0, 0, 0, 1, 0, 1, 1, 1, 0, 0}, torch::kLong);
  const at::Tensor tokens = torch::one_hot(chosen, 2).to(GetParam()) * std::log(3.0);
  for (const Case& c : cases) {
    const auto layer = build_layer(GetParam(), c.group, c.unit);
    for (const bool training : {true, false}) {
      const ForwardMode mode = training ? ForwardMode::training() : ForwardMode::evaluation();
      const MoeOutput out = layer->forward({tokens, kLayout, mode, {5, 6}});
      EXPECT_TRUE(torch::equal(out.routing.expert, chosen));
      EXPECT_TRUE(torch::equal(out.routing.capacity, torch::tensor(c.capacity, torch::kLong))) << c.group << c.unit;
      EXPECT_TRUE(torch::equal(out.routing.kept, torch::arange(10) != c.dropped)) << c.group << c.unit;
      if (!training) continue;
      EXPECT_NEAR(loss_named("switch", out), c.switch_loss, tol) << c.group << c.unit;
      EXPECT_NEAR(loss_named("vmoe_importance", out), c.vmoe_importance, tol) << c.group << c.unit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CapacityGroups, ::testing::Values(torch::kFloat, torch::kDouble));

}  // namespace sparsight::capacity_groups_test
