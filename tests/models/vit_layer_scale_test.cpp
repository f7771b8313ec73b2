#include "sparsight/nn/layer_scale.h"

#include <gtest/gtest.h>

#include "sparsight/models/vit_block.h"
#include "tests/support/program_answers.h"

namespace sparsight::layer_scale_test {
namespace {

void copy_values(const at::Tensor& parameter, const at::Tensor& value) {
  const torch::NoGradGuard no_grad;
  at::Tensor(parameter).copy_(value.view_as(parameter));
}

// A block of width 2 whose attention adds (1, 2) and whose MLP adds (3, 4) to any token, before the scales (10, 100)
// and (0.5, 2).
std::shared_ptr<VitBlock> constant_block() {
  VitBlockOptions options;
  options.attention = {2, 1, true};
  options.mlp_hidden = 4;
  options.layer_scale = 0.25;
  options.path = "blocks.0";
  auto block = std::make_shared<VitBlock>(options, nullptr);
  initialize(*block, 1);
  auto parameters = block->named_parameters();
  for (const char* name : {"ls1.gamma", "ls2.gamma"})
    EXPECT_TRUE(torch::equal(parameters[name], torch::full({2}, 0.25))) << name;
  copy_values(parameters["attn.qkv.weight"], torch::zeros({6, 2}));
  copy_values(parameters["attn.qkv.bias"], torch::tensor({0.F, 0.F, 0.F, 0.F, 1.F, 2.F}));  // values of every token
  copy_values(parameters["attn.proj.weight"], torch::eye(2));
  copy_values(parameters["ls1.gamma"], torch::tensor({10.F, 100.F}));
  copy_values(parameters["mlp.fc2.weight"], torch::zeros({2, 4}));
  copy_values(parameters["mlp.fc2.bias"], torch::tensor({3.F, 4.F}));
  copy_values(parameters["ls2.gamma"], torch::tensor({0.5F, 2.F}));
  return block;
}

at::Tensor run(VitBlock& block, const at::Tensor& x) {
  ModelOutput out;
  return block.forward(x, {x.size(0), x.size(1), 1, 1, 2}, ModelInput{}, out, x.size(1));
}

}  // namespace

// x + (10 * 1, 100 * 2) + (0.5 * 3, 2 * 4)
TEST(LayerScale, MultipliesBothBranchesOfABlock) {
  const auto block = constant_block();
  const at::Tensor x = torch::tensor({0.F, 1.F, -2.F, 3.F, 5.F, 8.F}).view({1, 3, 2}),
                   expected = x + torch::tensor({11.5F, 208.F});
  EXPECT_TRUE(torch::allclose(run(*block, x), expected, 0, 1e-4));
  engine::ProgramBuilder builder({.channels = 1, .height = 3, .width = 2, .mean = {}, .std = {}},
                                 {});  // pixels as tokens
  const engine::Value tokens = builder.planes(), y = block->compile(builder, tokens, tokens.shape.rows());
  const ProgramModel program(builder.finish(y, y), {1, 3, 2, 6});
  {
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::allclose(program.forward({.images = x.view({1, 1, 3, 2})}).features.view({1, 2}),
                                expected.select(1, 0), 0, 1e-4));
  }
  block->to(torch::kDouble);
  EXPECT_TRUE(torch::allclose(run(*block, x.to(torch::kDouble)), expected.to(torch::kDouble)));
}

// d(gamma * f(x)) / d gamma = f(x): the sum over three tokens of (1, 2).
TEST(LayerScale, HasTheGradientOfItsBranch) {
  const auto block = constant_block();
  run(*block, torch::zeros({1, 3, 2})).sum().backward();
  EXPECT_TRUE(torch::allclose(block->named_parameters()["ls1.gamma"].grad(), torch::tensor({3.F, 6.F}), 0, 1e-4));
  EXPECT_TRUE(torch::allclose(block->named_parameters()["ls2.gamma"].grad(), torch::tensor({9.F, 12.F}), 0, 1e-4));
}

TEST(LayerScale, IsPartOfTheLastLayersWeights) {
  Linear linear(2, 2);
  copy_values(linear->weight, torch::tensor({1.F, 2.F, 3.F, 4.F}));
  copy_values(linear->bias, torch::tensor({5.F, 6.F}));
  const LinearWeights weights = scaled(*linear, torch::tensor({2.F, -1.F}));
  EXPECT_TRUE(torch::equal(weights.weight, torch::tensor({2.F, 4.F, -3.F, -4.F}).view({2, 2})));
  EXPECT_TRUE(torch::equal(weights.bias, torch::tensor({10.F, -6.F})));
  EXPECT_TRUE(scaled(*linear, {}).weight.is_same(linear->weight));
}

}  // namespace sparsight::layer_scale_test
