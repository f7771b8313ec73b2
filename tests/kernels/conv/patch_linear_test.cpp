// The patch embedding by hand: patches of 2 x 2 pixels, two outputs.
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/kernels/conv/patch_linear.h"
#include "tests/kernels/every_level.h"

namespace sparsight::patch_linear_kernel_test {

TEST(PatchLinearKernel, OfTwoPatches) {
  testing::at_every_level([](cpu::Threads& threads) {
    const std::vector<float> pixels{1, 2, 3, 4, 5, 6, 7, 8};  // two rows of four
    const std::vector<float> weight{1, 1, 1, 1, 1, 0, 0, -1}, bias{0.5f, 10}, grad{1, 0, 0, 2};
    const cpu::PatchProduct product{.images = {pixels.data(), 1, 1, 2, 4, 8, 8, 4, 1},
                                    .side = 2,
                                    .outputs = 2,
                                    .weight = weight.data(),
                                    .bias = bias.data()};
    std::vector<float> tokens(4), pixels_grad(8), patches(8);
    cpu::patch_linear(threads, product, tokens.data());
    EXPECT_EQ(tokens, (std::vector<float>{14.5f, 5, 22.5f, 5}));
    cpu::patch_linear_backward(threads, product, grad.data(), pixels_grad.data());
    EXPECT_EQ(pixels_grad, (std::vector<float>{1, 1, 2, 0, 1, 1, 0, -2}));
    cpu::gather_patches(threads, product.images, 2, patches.data());
    EXPECT_EQ(patches, (std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8}));
  });
}

}  // namespace sparsight::patch_linear_kernel_test
