#include "sparsight/kernels/gemm/packed_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"

namespace sparsight::packed_linear_test {
namespace {

// x: [R,I] -> [R,count], outputs first .. first + count of x W^T + b.
at::Tensor apply_linear(const cpu::PackedLinear& linear, const at::Tensor& x, int64_t first, int64_t count) {
  const cpu::Kernels& kernel = cpu::kernels();
  const int64_t rows = x.size(0), blocks = cpu::count_blocks(x.size(1));
  const at::Tensor in = torch::zeros({blocks, rows, cpu::kBlockLd});
  for (int64_t c = 0; c < x.size(1); ++c)
    in.select(0, c / cpu::kBlock).select(1, c % cpu::kBlock).copy_(x.select(1, c));
  at::Tensor out = torch::empty({rows, count});
  cpu::Gemm p = linear.gemm(first, count);
  p.m = rows;
  p.a = in.const_data_ptr<float>(), p.a_block = rows * cpu::kBlockLd;
  p.c = out.data_ptr<float>(), p.c_ld = count;
  std::vector<float> panel(static_cast<size_t>(kernel.panel_floats) + 16);
  auto* const aligned = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(panel.data()) + 63) / 64 * 64);
  kernel.product(p, aligned);
  return out;
}

cpu::PackedLinear packed(const at::Tensor& weight, const at::Tensor& bias, WeightType type) {
  return {weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), weight.size(1), weight.size(0), type};
}

}  // namespace

// 1 * 1 + 2 * 3 + 0.5 = 7.5 and 1 * (-2) + 2 * 4 - 1 = 5.
TEST(PackedLinear, ByHand) {
  const at::Tensor weight = torch::tensor({1.0f, 3.0f, -2.0f, 4.0f}).view({2, 2}), bias = torch::tensor({0.5f, -1.0f});
  const at::Tensor x = torch::tensor({1.0f, 2.0f}).view({1, 2});
  for (const WeightType type : {WeightType::fp32, WeightType::bf16})
    EXPECT_TRUE(torch::equal(apply_linear(packed(weight, bias, type), x, 0, 2), torch::tensor({{7.5f, 5.0f}})));
  // int8: 1 and 2 are 64 (63.5 to even) and 127 in units of 2 / 127, 1 is 42 in units of 3 / 127, and -2 is -64 (-63.5
  // to even) in units of 4 / 127
  const double first = (64 * 42 + 127 * 127) * (2. / 127) * (3. / 127) + 0.5;
  const double second = (64 * -64 + 127 * 127) * (2. / 127) * (4. / 127) - 1;
  EXPECT_TRUE(test::near(apply_linear(packed(weight, bias, WeightType::int8), x, 0, 2),
                         torch::tensor({{first, second}}), 1e-5));
}

TEST(PackedLinear, AgreesWithTheProductAtEveryLevelAndSize) {
  test::at_each_level([](const std::string& level) {
    for (const auto& [rows, inputs, outputs] :
         {std::tuple{1, 5, 3}, {2, 385, 16}, {7, 33, 50}, {50, 384, 100}, {130, 500, 33}, {300, 40, 400}})
      for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
        const at::Tensor x = test::random_tensor({rows, inputs}, 1, torch::kFloat);
        const at::Tensor weight = test::random_tensor({outputs, inputs}, 2, torch::kFloat) / std::sqrt(inputs);
        const at::Tensor bias = test::random_tensor({outputs}, 3, torch::kFloat);
        const at::Tensor want = torch::linear(x.to(torch::kDouble), weight.to(torch::kDouble), bias.to(torch::kDouble));
        // Rounding of the weights: 2^-9 of each (bf16), 1/254 of the largest (int8, about 3.5 / sqrt(I)); products
        // with normal numbers add up like sqrt(I) of them; four standard deviations, and twice that for the largest.
        // With int8, rows are rounded like the weights.
        const double tolerance = type == WeightType::fp32   ? 1e-4
                                 : type == WeightType::bf16 ? 8 * std::ldexp(1, -9)
                                                            : 8 * std::sqrt(2) * 3.5 / 254;
        const cpu::PackedLinear linear = packed(weight, bias, type);
        EXPECT_TRUE(test::near(apply_linear(linear, x, 0, outputs), want, tolerance))
            << level << " " << rows << " " << inputs << " " << outputs << " " << static_cast<int>(type);
        if (outputs <= 16) continue;
        EXPECT_TRUE(torch::equal(apply_linear(linear, x, 16, outputs - 16),
                                 apply_linear(linear, x, 0, outputs).narrow(1, 16, outputs - 16)))
            << level << ": columns of a part have the bits of the whole";
      }
  });
}

TEST(PackedLinear, LayerNormByRowsInBlocks) {
  test::at_each_level([](const std::string& level) {
    for (const int64_t width : {1, 3, 16, 50, 384, 385, 900}) {
      const at::Tensor x = test::random_tensor({width}, 1, torch::kFloat) * 3 + 100;
      const at::Tensor weight = test::random_tensor({width}, 2, torch::kFloat),
                       bias = test::random_tensor({width}, 3, torch::kFloat);
      const int64_t blocks = cpu::count_blocks(width);
      at::Tensor out = torch::full({blocks, cpu::kBlockLd}, 7.0f);
      cpu::kernels().layer_norm(x.const_data_ptr<float>(), weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
                                1e-6f, width, out.data_ptr<float>(), cpu::kBlockLd);
      const at::Tensor got = out.narrow(1, 0, cpu::kBlock).reshape({-1}).narrow(0, 0, width);
      const at::Tensor want =
          torch::layer_norm(x.to(torch::kDouble), {width}, weight.to(torch::kDouble), bias.to(torch::kDouble), 1e-6);
      EXPECT_TRUE(test::near(got, want, 1e-4)) << level << " " << width;  // 100 +- 3: 2^-24 of 100, over 3
      EXPECT_EQ(out[0][cpu::kBlockLd - 1].item<float>(), 7) << "padding is left alone";
    }
  });
}

}  // namespace sparsight::packed_linear_test
