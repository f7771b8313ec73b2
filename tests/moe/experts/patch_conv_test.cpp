#include "sparsight/moe/experts/patch_conv.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::patch_conv_test {
namespace {

constexpr int64_t kFilters = 5;

// Groups of 3, 0, 1, 2 rows.
at::Tensor ragged_offsets() { return torch::tensor({0, 3, 3, 4, 6}, torch::kLong); }

// torch's convolution of each row with its expert's filters.
at::Tensor by_rows(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias, const PatchShape& patch,
                   const PatchKernel& kernel) {
  const std::vector<int64_t> expert{0, 0, 0, 2, 3, 3};
  std::vector<at::Tensor> out;
  for (size_t r = 0; r < expert.size(); ++r) {
    const at::Tensor filters = weight[expert[r]].t().reshape({kFilters, patch.channels, kernel.side, kernel.side});
    const at::Tensor map = at::conv2d(rows[r].view({1, patch.channels, patch.height, patch.width}), filters,
                                      bias[expert[r]], kernel.stride, kernel.padding);
    out.push_back(map.flatten(2).squeeze(0).t());  // [L,F]
  }
  return torch::stack(out);
}

}  // namespace

TEST(PatchConv, EqualsAConvolutionRowByRow) {
  for (const PatchShape& patch : {PatchShape{2, 4, 4}, PatchShape{3, 5, 4}, PatchShape{6, 1, 1}})
    for (const PatchKernel& kernel : {PatchKernel{1}, PatchKernel{3, 1}, PatchKernel{3, 1, 2}, PatchKernel{4, 0}}) {
      if (kernel.side > std::min(patch.height, patch.width) + 2 * kernel.padding) continue;
      const at::Tensor rows = test::random_tensor({6, patch.channels * patch.height * patch.width}, 1);
      const at::Tensor weight = test::random_tensor({4, patch.channels * kernel.side * kernel.side, kFilters}, 2);
      const at::Tensor bias = test::random_tensor({4, kFilters}, 3);
      const at::Tensor got = patch_conv(rows, ragged_offsets(), weight, bias, patch, kernel);
      ASSERT_EQ(got.size(1), kernel_positions(patch, kernel));
      EXPECT_TRUE(torch::allclose(got, by_rows(rows, weight, bias, patch, kernel), 1e-10, 1e-10))
          << patch.height << " " << kernel.side << " " << kernel.stride;
    }
}

TEST(PatchConv, GradientsAgreeWithCentralDifferences) {
  const PatchShape patch{2, 3, 3};
  const PatchKernel kernel{2, 1, 2};
  const at::Tensor rows = test::random_tensor({6, 18}, 1), weight = test::random_tensor({4, 8, kFilters}, 2);
  const at::Tensor bias = test::random_tensor({4, kFilters}, 3);
  const at::Tensor upstream = test::random_tensor({6, kernel_positions(patch, kernel), kFilters}, 4);
  const auto loss = [&] { return (patch_conv(rows, ragged_offsets(), weight, bias, patch, kernel) * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {rows, weight, bias}), 1e-7);
}

TEST(PatchConv, NoRowsGiveAnEmptyMap) {
  const at::Tensor out = patch_conv(torch::empty({0, 18}, torch::kDouble), torch::zeros({5}, torch::kLong),
                                    test::random_tensor({4, 18, kFilters}, 2), {}, {2, 3, 3}, {3, 1});
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{0, 9, kFilters}));
}

}  // namespace sparsight::patch_conv_test
