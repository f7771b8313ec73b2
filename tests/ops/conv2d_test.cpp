#include "sparsight/ops/conv2d.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/ops/twice_differentiable.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::conv2d_test {
namespace {

struct Case {
  int64_t images, inputs, height, width, outputs, kernel, stride;
  MapPadding padding;
};
// Strides above the kernel and windows beyond the map; more window rows than are stored at once (512); depths below, at
// and above a block of 384.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {1, 1, 1, 1, 1, 1, 1, {}},
      {2, 3, 5, 7, 4, 3, 1, {1, 1, 1, 1}},
      {3, 5, 6, 4, 7, 3, 2, {0, 1, 0, 1}},
      {2, 4, 9, 8, 3, 1, 2, {}},
      {1, 2, 7, 11, 5, 2, 3, {1, 0, 2, 1}},
      {2, 3, 12, 10, 6, 7, 2, {3, 3, 3, 3}},
      {1, 6, 4, 4, 40, 5, 1, {4, 4, 4, 4}},
      {3, 64, 14, 15, 33, 3, 1, {1, 1, 1, 1}},
      {2, 48, 17, 9, 70, 3, 2, {1, 1, 1, 1}},
  };
  return all;
}

struct Leaves {
  at::Tensor x, weight, bias;
};
Leaves make_leaves(const Case& c) {
  return {test::random_tensor({c.images, c.inputs, c.height, c.width}, 1),
          test::random_tensor({c.outputs, c.inputs, c.kernel, c.kernel}, 2) * 0.3, test::random_tensor({c.outputs}, 3)};
}
Leaves with_gradients(const Leaves& leaves, at::ScalarType type) {
  const auto leaf = [&](const at::Tensor& x) { return x.detach().to(type).clone().requires_grad_(true); };
  return {leaf(leaves.x), leaf(leaves.weight), leaf(leaves.bias)};
}

// The output, then the gradients of x, weight and bias, for a fixed gradient of the output.
std::vector<at::Tensor> results(const at::Tensor& y, const Leaves& l) {
  const at::Tensor grad = test::random_tensor(y.sizes(), 4).to(y.scalar_type());
  std::vector<at::Tensor> all{y.detach()};
  for (const at::Tensor& g : torch::autograd::grad({y}, {l.x, l.weight, l.bias}, {grad})) all.push_back(g);
  return all;
}
std::vector<at::Tensor> our_results(const Case& c) {
  const Leaves l = with_gradients(make_leaves(c), torch::kFloat);
  return results(conv2d(l.x, l.weight, l.bias, c.stride, c.padding), l);
}
std::vector<at::Tensor> exact_results(const Case& c) {
  const Leaves l = with_gradients(make_leaves(c), torch::kDouble);
  return results(torch_conv2d(l.x, l.weight, l.bias, c.stride, c.padding, 1), l);
}

double error(const at::Tensor& value, const at::Tensor& exact) {
  return ((value.to(torch::kDouble) - exact).abs().max() / exact.abs().max().clamp_min(1)).item<double>();
}

}  // namespace

// The map 1 2 / 3 4 and the kernel 1 -1 / 0 2 with one zero at the right and below: outputs
//   1 - 2 + 2 * 4 = 7, 2; 3 - 4 = -1, 4, each + 0.5.
// With the gradients 1 10 / 100 1000: pixels 1, 10 - 1 = 9, 100, 1000 - 100 + 2 * 1 = 902; taps 1 + 20 + 300 + 4000,
// 2 * 1 + 4 * 100, 3 * 1 + 4 * 10, 4 * 1; bias 1111.
TEST(Conv2d, IsWorkedOutByHand) {
  const Leaves l = with_gradients({torch::tensor({1.0, 2.0, 3.0, 4.0}).view({1, 1, 2, 2}),
                                   torch::tensor({1.0, -1.0, 0.0, 2.0}).view({1, 1, 2, 2}), torch::tensor({0.5})},
                                  torch::kFloat);
  const at::Tensor y = conv2d(l.x, l.weight, l.bias, 1, {0, 1, 0, 1});
  EXPECT_TRUE(torch::equal(y.flatten(), torch::tensor({7.5F, 2.5F, -0.5F, 4.5F})));
  const at::Tensor grad = torch::tensor({1.0F, 10.0F, 100.0F, 1000.0F}).view({1, 1, 2, 2});
  const auto grads = torch::autograd::grad({y}, {l.x, l.weight, l.bias}, {grad});
  EXPECT_TRUE(torch::equal(grads[0].flatten(), torch::tensor({1.0F, 9.0F, 100.0F, 902.0F})));
  EXPECT_TRUE(torch::equal(grads[1].flatten(), torch::tensor({4321.0F, 402.0F, 43.0F, 4.0F})));
  EXPECT_EQ(grads[2].item<float>(), 1111);
}

// Output and gradients, at each level of instructions, against torch's convolution in float64.
TEST(Conv2d, AgreesWithTorchInFloat64) {
  for (size_t i = 0; i < cases().size(); ++i) {
    const std::vector<at::Tensor> exact = exact_results(cases()[i]);
    test::at_each_level([&](const std::string& level) {
      const std::vector<at::Tensor> ours = our_results(cases()[i]);
      for (size_t r = 0; r < exact.size(); ++r) {
        ASSERT_EQ(ours[r].sizes(), exact[r].sizes());
        EXPECT_LT(error(ours[r], exact[r]), 2e-5) << level << " case " << i << " result " << r;
      }
    });
  }
}

TEST(Conv2d, HasTheSameBitsForAnyNumberOfThreadsAndAnyLayout) {
  for (const Case& c : cases()) {
    std::vector<at::Tensor> first;
    for (const int threads : {1, 2, 3, 7}) {
      const test::ThreadCount some(threads);
      const std::vector<at::Tensor> all = our_results(c);
      if (first.empty()) first = all;
      for (size_t r = 0; r < all.size(); ++r) EXPECT_TRUE(torch::equal(all[r], first[r])) << threads << " " << r;
    }
    const Leaves l = make_leaves(c);
    const auto channels_last = [](const at::Tensor& x) {
      return x.to(torch::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
    };
    EXPECT_TRUE(torch::equal(
        conv2d(channels_last(l.x), channels_last(l.weight), l.bias.to(torch::kFloat), c.stride, c.padding), first[0]));
  }
}

// Operands keep 8 bits.
TEST(Conv2d, MultipliesBf16WhereAutocastWantsIt) {
  if (!cpu::kernels().multiplies_bf16) GTEST_SKIP() << "this CPU does not multiply bf16";
  const Case& c = cases()[7];
  const std::vector<at::Tensor> exact = exact_results(c);
  const ProductScope bf16(ProductType::bf16);
  const std::vector<at::Tensor> half = our_results(c);
  for (size_t r = 0; r < exact.size(); ++r) EXPECT_LT(error(half[r], exact[r]), 2e-2) << r;
}

TEST(Conv2d, HasASecondDerivativeOnlyWhereItIsWanted) {
  const Case& c = cases()[1];
  const auto penalty = [&](const Leaves& l) {
    const at::Tensor y = conv2d(l.x, l.weight, l.bias, c.stride, c.padding);
    const at::Tensor grad = torch::autograd::grad({y.square().sum()}, {l.x}, {}, true, /*create_graph=*/true)[0];
    return grad.square().sum();
  };
  EXPECT_THROW(penalty(with_gradients(make_leaves(c), torch::kFloat)), Error);
  const TwiceDifferentiable twice;
  EXPECT_TRUE(penalty(with_gradients(make_leaves(c), torch::kFloat)).requires_grad());
}

}  // namespace sparsight::conv2d_test
