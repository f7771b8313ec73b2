#include "sparsight/optim/parameter_groups.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::parameter_groups_test {
namespace {

std::vector<OptimizedParameter> parameters() {
  std::vector<OptimizedParameter> list;
  for (const char* name : {"blocks.1.mlp.router.weight", "blocks.1.norm.bias", "blocks.10.fc.weight", "head.weight"})
    list.push_back({name, at::full({1}, 1.0, at::kFloat), std::string(name) != "blocks.1.norm.bias"});
  return list;
}

std::vector<ParameterGroup> groups(const std::string& text) {
  return parameter_groups_from(Json::parse(text), "train.param_groups");
}

std::string parse_error(const std::string& text) {
  return testing::error_text<UsageError>([&] {
    std::vector<OptimizedParameter> list = parameters();
    apply_groups(groups(text), "train.param_groups", list);
  });
}

TEST(ParameterGroups, NameWholePartsOfNames) {
  EXPECT_TRUE(has_name_part("blocks.1.mlp.router.weight", "router"));
  EXPECT_TRUE(has_name_part("blocks.1.mlp.router.weight", "blocks.1"));
  EXPECT_TRUE(has_name_part("head.weight", "head.weight"));
  EXPECT_FALSE(has_name_part("blocks.10.fc.weight", "blocks.1"));
  EXPECT_FALSE(has_name_part("blocks.1.mlp.router.weight", "rout"));
  EXPECT_FALSE(has_name_part("head.weight", ""));
}

TEST(ParameterGroups, SetRateAndDecayOfWhatTheyName) {
  std::vector<OptimizedParameter> list = parameters();
  apply_groups(groups(R"([{"parameters": ["blocks.1"], "lr_factor": 0.1, "weight_decay": 0.3},
                          {"parameters": ["head"], "lr_factor": 4}])"),
               "", list);
  EXPECT_EQ(list[0].lr_factor, 0.1);
  EXPECT_EQ(list[0].weight_decay, 0.3);
  EXPECT_EQ(list[2].lr_factor, 1);
  EXPECT_FALSE(list[2].weight_decay);
  EXPECT_EQ(list[3].lr_factor, 4);
  EXPECT_FALSE(list[3].weight_decay);

  // Gradients of 2 with lr 0.1 and the optimiser's decay of 0.5, all weights 1: w - lr * factor * (2 + decay * w).
  for (OptimizedParameter& parameter : list) parameter.value.mutable_grad() = at::full({1}, 2.0, at::kFloat);
  optimizers()
      .make("sgd", {{"momentum", 0.0}, {"nesterov", false}, {"weight_decay", 0.5}}, "optimizer", list)
      ->step(0.1);
  EXPECT_NEAR(list[0].value.item<float>(), 1 - 0.01 * 2.3, 1e-6);
  EXPECT_NEAR(list[1].value.item<float>(), 1 - 0.01 * 2.0, 1e-6);  // a bias: without decay in its group, too
  EXPECT_NEAR(list[2].value.item<float>(), 1 - 0.1 * 2.5, 1e-6);
  EXPECT_NEAR(list[3].value.item<float>(), 1 - 0.4 * 2.5, 1e-6);
}

TEST(ParameterGroups, RefuseWhatFitsNoParameterOrTwoGroups) {
  EXPECT_EQ(parse_error(R"([{"parameters": ["head"]}])"), "");
  EXPECT_NE(parse_error(R"([{"parameters": ["ruoter"]}])").find("did you mean \"router\"?"), std::string::npos);
  EXPECT_NE(parse_error(R"([{"parameters": ["heda.weight"]}])").find("did you mean \"head.weight\"?"),
            std::string::npos);
  EXPECT_NE(parse_error(R"([{"parameters": ["router"]}, {"parameters": ["blocks.1"]}])")
                .find("train.param_groups[0] and [1] both name blocks.1.mlp.router.weight"),
            std::string::npos);
  EXPECT_NE(parse_error(R"([{"lr_factor": 2}])").find("train.param_groups[0] names no parameters"), std::string::npos);
  EXPECT_NE(parse_error(R"([{"parameters": ["head"], "lr": 2}])").find("unknown setting train.param_groups[0].lr"),
            std::string::npos);
  EXPECT_NE(parse_error(R"([{"parameters": ["head"], "lr_factor": -1}])").find("train.param_groups[0].lr_factor"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::parameter_groups_test
