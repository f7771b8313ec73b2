#include "sparsight/moe/setting_schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::setting_schedule_test {
namespace {

Json config_with(const Json& schedule) {
  return {{"moe", {{"experts", 4}, {"hidden", 8}, {"schedule", schedule}}},
          {"capacity", {{"factor", 2}}},
          {"losses", Json::object()},
          {"router", {{"name", "softmax_topk"}}}};
}

std::string refusal(const Json& entry) {
  return testing::error_text<UsageError>([&] {
    const Json config = config_with(Json::array({entry}));
    MoeLayer layer(read_moe_spec(config), {"moe", 6, 8});
    check_setting_schedules(layer, read_setting_schedules(config));
  });
}

}  // namespace

// From 4 to 1 between a quarter and three quarters of the training.
TEST(SettingSchedule, MovesInAStraightLineAlongACosineOrAtOnce) {
  SettingSchedule line{"router.k", 4, 1, 0.25, 0.75, "linear"};
  const std::vector<std::pair<double, double>> linear{{0, 4}, {0.25, 4}, {0.5, 2.5}, {0.625, 1.75}, {0.75, 1}, {1, 1}};
  for (const auto& [progress, value] : linear) EXPECT_DOUBLE_EQ(line.at(progress), value) << progress;
  line.shape = "cosine";
  // Half-way along the cosine at one third of the way: (1 - cos(pi / 3)) / 2 = 1/4, 4 - 3/4.
  EXPECT_NEAR(line.at(0.25 + 0.5 / 3), 3.25, 1e-12);
  EXPECT_NEAR(line.at(0.5), 2.5, 1e-12);
  line.shape = "step";
  EXPECT_DOUBLE_EQ(line.at(0.74), 4);
  EXPECT_DOUBLE_EQ(line.at(0.75), 1);
}

TEST(SettingSchedule, ChangesWhatTheLayerDoes) {
  const Json config = config_with({{{"setting", "router.k"}, {"from", 3}, {"to", 1}},
                                   {{"setting", "capacity.factor"}, {"from", 2}, {"to", 0.5}},
                                   {{"setting", "router.noise"}, {"from", 1}, {"to", 0}}});
  MoeLayer layer(read_moe_spec(config), {"moe", 6, 8});
  initialize(layer, 1);
  const auto schedules = read_setting_schedules(config);
  const at::Tensor x = test::random_tensor({20, 6}, 3, torch::kFloat);
  const auto route = [&](double progress) {
    apply_setting_schedules(layer, schedules, progress);
    return layer.route({x, {1, 20, 0, 0, 0}, ForwardMode::training(), {1, 2}});
  };
  EXPECT_EQ(route(0).per_token, 3);
  EXPECT_EQ(route(0).capacity.item<int64_t>(), 20);  // 2 * 3 * 20 / 4 = 30, at most all tokens
  EXPECT_EQ(route(0.5).per_token, 2);
  EXPECT_EQ(route(0.5).capacity.item<int64_t>(), 13);  // 1.25 * 2 * 20 / 4 = 12.5
  EXPECT_EQ(route(1).per_token, 1);
  EXPECT_EQ(route(1).capacity.item<int64_t>(), 3);  // 0.5 * 20 / 4 = 2.5
  EXPECT_FALSE(route(1).noise_scale.defined());
  EXPECT_DOUBLE_EQ(route(0.5).noise_scale.item<double>(), 0.125);
  EXPECT_TRUE(torch::equal(route(0).expert, route(0).expert));  // a function of progress alone
}

TEST(SettingSchedule, WhatIsNoneIsRefusedInOneLine) {
  EXPECT_NE(refusal({{"setting", "router.k"}, {"from", 9}, {"to", 1}}).find("chooses 9 experts per token"),
            std::string::npos);
  EXPECT_NE(refusal({{"setting", "router.kk"}, {"from", 2}, {"to", 1}})
                .find("router.kk cannot follow a schedule in this model"),
            std::string::npos);
  EXPECT_NE(refusal({{"setting", "capacity.facto"}, {"from", 2}, {"to", 1}}).find("did you mean"), std::string::npos);
  EXPECT_NE(refusal({{"setting", "capacity.multiple"}, {"from", 2}, {"to", 1}}).find("cannot follow a schedule"),
            std::string::npos);
  EXPECT_NE(refusal({{"setting", "capacity.factor"}, {"from", 2}, {"to", -1}}).find("capacity.factor"),
            std::string::npos);
  EXPECT_NE(refusal({{"setting", "router.k"}, {"from", 2}}).find("needs to"), std::string::npos);
  EXPECT_NE(
      refusal({{"setting", "router.k"}, {"from", 2}, {"to", 1}, {"begin", 0.5}, {"end", 0.1}}).find("is after end"),
      std::string::npos);
}

}  // namespace sparsight::setting_schedule_test
