// Attention of two tokens by hand, and the same bits on any number of threads.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/kernels/attention/attention.h"
#include "tests/kernels/every_level.h"

namespace sparsight::attention_kernel_test {

// One head of size 1. The first query is 0, so its probabilities are equal; the second gives 1/4 and 3/4. The gradient
// of the first output reaches its query by 1/2 (3 - 2), and the values by their probabilities.
TEST(AttentionKernel, OfTwoTokens) {
  testing::at_every_level([](cpu::Threads& threads) {
    const std::vector<float> qkv{0, 0, 1, std::log(3.0f), 1, 3}, out_grad{1, 0};
    std::vector<float> out(2), log_sum(2), qkv_grad(6, -1);
    const cpu::AttentionShape shape{.images = 1, .tokens = 2, .heads = 1, .width = 1, .queries = 2};
    cpu::attention_forward(threads, shape, qkv.data(), out.data(), log_sum.data());
    EXPECT_NEAR(out[0], 2, 1e-5);
    EXPECT_NEAR(out[1], 2.5, 1e-5);
    EXPECT_NEAR(log_sum[0], 1, 1e-5);
    EXPECT_NEAR(log_sum[1], 2, 1e-5);
    cpu::attention_backward(threads, shape, qkv.data(), {out.data(), log_sum.data(), out_grad.data()}, qkv_grad.data());
    const std::vector<float> want{0.5f, 0, 0.5f, 0, 0, 0.5f};
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(qkv_grad[i], want[i], 1e-5) << i;
  });
}

TEST(AttentionKernel, HasTheSameBitsOnAnyNumberOfThreads) {
  const cpu::AttentionShape shape{.images = 2, .tokens = 70, .heads = 2, .width = 32, .queries = 70};
  std::vector<float> qkv(2 * 70 * 96);
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = std::sin(static_cast<float>(i));
  std::vector<std::vector<float>> results;
  for (const int64_t count : {1, 2, 4}) {
    cpu::OwnThreads threads(count);
    std::vector<float>& out = results.emplace_back(2 * 70 * 32);
    cpu::attention_forward(threads, shape, qkv.data(), out.data(), nullptr);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Products of bf16 have 8 bits: outputs, which are means of numbers up to 1, differ by less than 2^-6 from those of
// fp32.
TEST(AttentionKernel, OfBf16IsCloseToThatOfFp32) {
  cpu::AttentionShape shape{.images = 1, .tokens = 70, .heads = 2, .width = 32, .queries = 70};
  std::vector<float> qkv(70 * 96), want(70 * 32), got(70 * 32), log_sum(2 * 70);
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = std::sin(static_cast<float>(i));
  testing::at_every_level([&](cpu::Threads& threads) {
    shape.bf16 = false;
    cpu::attention_forward(threads, shape, qkv.data(), want.data(), log_sum.data());
    shape.bf16 = true;
    cpu::attention_forward(threads, shape, qkv.data(), got.data(), log_sum.data());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 0x1p-6) << i;
  });
}

}  // namespace sparsight::attention_kernel_test
