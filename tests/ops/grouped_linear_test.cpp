#include "sparsight/ops/grouped_linear.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::grouped_linear_test {
namespace {

// Groups of 3, 0, 1, 4 rows: ragged, with an empty expert.
at::Tensor ragged_offsets() { return torch::tensor({0, 3, 3, 4, 8}, torch::kLong); }

}  // namespace

TEST(GroupedLinear, GradientsAgreeWithCentralDifferences) {
  const at::Tensor rows = test::random_tensor({8, 3}, 1), weight = test::random_tensor({4, 3, 5}, 2);
  const at::Tensor bias = test::random_tensor({4, 5}, 3), pull = test::random_tensor({8, 5}, 4);
  const auto with_bias = [&] { return (grouped_linear(rows, ragged_offsets(), weight, bias) * pull).sum(); };
  EXPECT_LT(test::gradient_error(with_bias, {rows, weight, bias}), 1e-8);
  EXPECT_TRUE(torch::equal(weight.grad()[1], torch::zeros_like(weight.grad()[1])));  // the empty expert
  EXPECT_TRUE(torch::equal(bias.grad()[1], torch::zeros_like(bias.grad()[1])));
  const auto without = [&] { return (grouped_linear(rows, ragged_offsets(), weight) * pull).sum(); };
  EXPECT_LT(test::gradient_error(without, {rows, weight}), 1e-8);
}

TEST(GroupedLinear, AgreesWithRowByRowProductsOnStridedInputs) {
  const at::Tensor rows = test::random_tensor({3, 8}, 1).t(),
                   weight = test::random_tensor({4, 5, 3}, 2).transpose(1, 2);
  const at::Tensor bias = test::random_tensor({4, 10}, 3).slice(1, 0, 10, 2), offsets = ragged_offsets();
  const at::Tensor got = grouped_linear(rows, offsets, weight, bias);
  for (int64_t e = 0; e < 4; ++e)
    for (int64_t r = offsets[e].item<int64_t>(); r < offsets[e + 1].item<int64_t>(); ++r)
      EXPECT_TRUE(torch::allclose(got[r], rows[r].matmul(weight[e]) + bias[e], 1e-12, 1e-12));
}

TEST(GroupedLinear, WrongShapesAndTypesAreRefused) {
  const at::Tensor rows = torch::zeros({8, 3}), weight = torch::zeros({4, 3, 5}), offsets = ragged_offsets();
  EXPECT_THROW(grouped_linear(torch::zeros({8, 4}), offsets, weight), Error);
  EXPECT_THROW(grouped_linear(rows, offsets.slice(0, 1), weight), Error);
  EXPECT_THROW(grouped_linear(rows, offsets, weight, torch::zeros({4, 3})), Error);
  EXPECT_THROW(grouped_linear(rows.to(torch::kDouble), offsets, weight), Error);
}

}  // namespace sparsight::grouped_linear_test
