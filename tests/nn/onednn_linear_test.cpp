#include "sparsight/nn/onednn_linear.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/engines.h"
#include "sparsight/nn/linear.h"
#include "sparsight/ops/twice_differentiable.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::onednn_linear_test {
namespace {

at::Tensor floats(at::IntArrayRef sizes, uint64_t seed) { return test::random_tensor(sizes, seed, torch::kFloat); }

// (1, 2) times the rows (1, 1), (0, 2) and (-1, 0), with bias (0, 1, 0): (3, 4 + 1, -1).
TEST(OnednnLinear, AWorkedProduct) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  const at::Tensor weight = torch::tensor({{1.0f, 1.0f}, {0.0f, 2.0f}, {-1.0f, 0.0f}});
  EXPECT_TRUE(torch::equal(onednn_linear(torch::tensor({{1.0f, 2.0f}}), weight, torch::tensor({0.0f, 1.0f, 0.0f})),
                           torch::tensor({{3.0f, 5.0f, -1.0f}})));
}

// Values and all gradients against torch's layer in float64, also of shapes that fill no vector, and without a bias.
TEST(OnednnLinear, GivesWhatTorchGivesInFloat64) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 17, 5}, {50, 384, 97}})
    for (const bool with_bias : {true, false}) {
      std::vector<at::Tensor> inputs{floats({rows, in}, 1), floats({out, in}, 2)};
      if (with_bias) inputs.push_back(floats({out}, 3));
      const at::Tensor grad = floats({rows, out}, 4);
      std::vector<at::Tensor> exact;
      for (at::Tensor& t : inputs) {
        exact.push_back(t.to(torch::kDouble).requires_grad_());
        t.requires_grad_();
      }
      const at::Tensor bias = with_bias ? inputs[2] : at::Tensor();
      const at::Tensor y = onednn_linear(inputs[0], inputs[1], bias),
                       expected = at::linear(exact[0], exact[1],
                                             with_bias ? std::optional<at::Tensor>(exact[2]) : std::nullopt);
      y.backward(grad);
      expected.backward(grad.to(torch::kDouble));
      EXPECT_TRUE(test::near(y, expected, 1e-4)) << rows << " " << in << " " << out;
      for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(test::near(inputs[i].grad(), exact[i].grad(), 1e-4)) << i;
    }
}

TEST(OnednnLinear, SecondDerivativesAreRefusedOrTorchs) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  const at::Tensor x = floats({2, 3}, 1).requires_grad_(), weight = floats({4, 3}, 2).requires_grad_();
  const auto twice = [&] {
    const at::Tensor y = onednn_linear(x, weight, {}).square().sum();
    const at::Tensor slope = torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({slope.square().sum()}, {weight})[0];
  };
  EXPECT_EQ(testing::message_of(twice),
            "linear layers on oneDNN have no second derivative; call backward without create_graph");
  const TwiceDifferentiable differentiable;
  EXPECT_GT(twice().abs().sum().item<float>(), 0);
}

// fully_connected asks for the engine of its mode: oneDNN's operation is in the graph only where training is on it.
TEST(OnednnLinear, LayersRunOnTheEngineOfTheirMode) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  const at::Tensor x = floats({2, 3}, 1), weight = floats({4, 3}, 2).requires_grad_();
  const auto name = [&] {
    auto operation = fully_connected(x, weight, {}).grad_fn();
    while (operation->name().find("Linear") == std::string::npos) operation = operation->next_edge(0).function;
    return operation->name();
  };
  const std::string kernels = name();
  const EngineScope inference({Engine::kernels, Engine::onednn, Engine::kernels});
  EXPECT_EQ(name(), kernels);
  const EngineScope training({Engine::onednn, Engine::kernels, Engine::kernels});
  EXPECT_NE(name().find("OnednnLinear"), std::string::npos) << name();
}

}  // namespace
}  // namespace sparsight::onednn_linear_test
