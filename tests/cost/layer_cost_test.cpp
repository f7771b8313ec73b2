// The published columns of Shazeer et al. 2017 (tables 7 to 9): "ops/timestep" in millions and parameters without
// embedding and softmax in millions, for every model whose layers the paper specifies. Integers, so there are no types
// or gradients to test.
#include "sparsight/cost/layer_cost.h"

#include <gtest/gtest.h>

namespace sparsight::layer_cost_test {
namespace {

constexpr int64_t kNoisy = 2;  // Wg and Wn

// LSTM, MoE, LSTM.
struct LanguageModel {
  int64_t width = 512;
  int64_t units = 512, projection = 0;
  int64_t hidden = 1024;
  int64_t experts = 4;
  int64_t groups = 0;  // 0: a flat MoE with 4 experts per token, else two levels with 2 of 2
};

Cost total_cost(const LanguageModel& m) {
  const Cost lstm = lstm_cost(m.width, m.units, m.projection);
  const Cost experts = experts_cost(mlp_cost({m.width, m.hidden}), m.experts, 4);
  const Cost router = m.groups > 0 ? hierarchical_router_cost(m.width, m.experts, m.groups, 2, kNoisy)
                                   : router_cost(m.width, m.experts, kNoisy);
  return copies(lstm, 2) + experts + router;
}

void expect_millions(Cost cost, double multiply_adds, double parameters, double rounding) {
  EXPECT_NEAR(static_cast<double>(cost.multiply_adds) / 1e6, multiply_adds, rounding);
  EXPECT_NEAR(static_cast<double>(cost.parameters) / 1e6, parameters, rounding);
}

}  // namespace

TEST(LayerCost, S40_ReproducesThePublishedFiguresToThreeDecimals) {
  constexpr double rounding = 0.0005;
  expect_millions(total_cost({.experts = 256}), 8.651, 272.892, rounding);
  expect_millions(total_cost({.experts = 4096, .groups = 16}), 8.929, 4303.372, rounding);
  expect_millions(total_cost({.experts = 65536, .groups = 256}), 9.175, 68791.042, rounding);
  expect_millions(total_cost({.experts = 131072, .groups = 256}), 9.699, 137577.628, rounding);
  const Cost largest =
      total_cost({.width = 1024, .units = 4096, .projection = 1024, .hidden = 8192, .experts = 256, .groups = 16});
  EXPECT_NEAR(static_cast<double>(largest.multiply_adds) / 1e6, 142.705, rounding);  // MoE-143M
}

TEST(LayerCost, S40_ReproducesTheTableOfLanguageModels) {
  constexpr double rounding = 0.0501;
  expect_millions(copies(lstm_cost(512, 512), 4), 8.4, 8.4, rounding);                             // 4xLSTM-512
  expect_millions(lstm_cost(512, 2048, 512), 9.4, 9.4, rounding);                                  // LSTM-2048-512
  expect_millions(copies(lstm_cost(512, 512), 2) + mlp_cost({512, 4096}), 8.4, 8.4, rounding);     // MoE-1-Wide
  expect_millions(copies(lstm_cost(512, 512), 2) + mlp_cost({512, 1024, 4}), 8.4, 8.4, rounding);  // MoE-1-Deep
  EXPECT_NEAR(static_cast<double>(total_cost({.experts = 4}).parameters) / 1e6, 8.4, rounding);    // MoE-4
  expect_millions(total_cost({.experts = 32}), 8.4, 37.8, rounding);
  expect_millions(total_cost({.experts = 256, .groups = 16}), 8.4, 272.9, rounding);
  expect_millions(total_cost({.experts = 1024, .groups = 16}), 8.5, 1079.0, rounding);
  expect_millions(total_cost({.width = 1024, .units = 1024, .hidden = 2048, .experts = 1024, .groups = 16}), 33.8,
                  4313.9,
                  rounding);  // MoE-34M
}

TEST(LayerCost, SmallCasesByHand) {
  const Cost linear = linear_cost(3, 5, true);
  EXPECT_EQ(linear.multiply_adds, 15);
  EXPECT_EQ(linear.parameters, 20);
  // 3 -> 4 -> 4 -> 3 with biases: 12 + 16 + 12 products, 11 biases.
  const Cost deep = mlp_cost({.width = 3, .hidden = 4, .depth = 2, .bias = true});
  EXPECT_EQ(deep.multiply_adds, 40);
  EXPECT_EQ(deep.parameters, 51);
  EXPECT_EQ(mlp_cost({.width = 3, .hidden = 4, .gated = true}).parameters, 36);  // two maps up, one down
  // 2 groups of 3 experts, one group chosen: 4 * 2 + 4 * 3 products, 4 * 2 + 2 * 4 * 3 parameters.
  const Cost router = hierarchical_router_cost(4, 6, 2, 1);
  EXPECT_EQ(router.multiply_adds, 20);
  EXPECT_EQ(router.parameters, 32);
}

// Elementwise operations by hand, with the rules of cost/layer_cost.h.
TEST(LayerCost, ElementwiseOperationsByHand) {
  EXPECT_EQ(linear_cost(3, 5, true).elementwise, 5);
  EXPECT_EQ(linear_cost(3, 5, false).elementwise, 0);
  EXPECT_EQ(norm_cost(6).elementwise, 42);
  // 3 -> 4 -> 4 -> 3: biases 4 + 4 + 3, GELU 5 for each of 8 hidden numbers.
  EXPECT_EQ(mlp_cost({.width = 3, .hidden = 4, .depth = 2, .bias = true}).elementwise, 11 + 40);
  // 2 heads on 5 tokens of width 8: biases 4 * 8 and scaled queries 8 of each token, 4 for each of 2 * 25 weights.
  EXPECT_EQ(attention_cost({8, 2, true}, 5).elementwise, 5 * (32 + 8) + 4 * 2 * 25);
  EXPECT_EQ(attention_cost({8, 2, false}, 5).elementwise, 5 * (8 + 8) + 4 * 2 * 25);
  EXPECT_EQ(attention_cost({8, 2, true}, 5).multiply_adds, 5 * 4 * 64 + 2 * 25 * 8);
  // One query: keys and values of 5 tokens, its own query and projection, 5 scores and as many weights.
  EXPECT_EQ(attention_cost({8, 2, true}, 5, 1).multiply_adds, 5 * 2 * 64 + 2 * 64 + 2 * 5 * 8);
  EXPECT_EQ(attention_cost({8, 2, true}, 5, 1).parameters, attention_cost({8, 2, true}, 5).parameters);
}

// 6 experts of 10 parameters and 8 products, of which a token uses 2; 3 tokens of an image reach 4 of them.
TEST(LayerCost, ExpertsCountWhatIsUsed) {
  Cost expert = parameters_cost(10);
  expert.multiply_adds = 8;
  const Cost cost = experts_cost(expert, {.experts = 6, .tokens = 3, .rows = 6, .active = 2, .touched = 4});
  EXPECT_EQ(cost.multiply_adds, 48);
  EXPECT_EQ(cost.parameters, 60);
  EXPECT_EQ(cost.active_parameters, 20);
  EXPECT_EQ(cost.weight_bytes, 4 * 40);
  // Never more than there are.
  EXPECT_EQ(experts_cost(expert, {.experts = 6, .tokens = 3, .rows = 6.5, .active = 2, .touched = 9}).weight_bytes,
            240);
  EXPECT_EQ(experts_cost(expert, {.experts = 6, .tokens = 3, .rows = 6.5, .active = 2, .touched = 9}).multiply_adds,
            52);
}

}  // namespace sparsight::layer_cost_test
