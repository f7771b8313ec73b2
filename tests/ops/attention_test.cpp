#include "sparsight/ops/attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/ops/ref/attention.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/live_bytes.h"
#include "tests/support/near.h"

namespace sparsight::attention_op_test {
namespace {

struct Shape {
  int64_t images, tokens, heads, size;
};
std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.images << " images, " << s.tokens << " tokens, " << s.heads << " heads of " << s.size;
}

at::Tensor random_qkv(const Shape& s, uint64_t seed, at::ScalarType type = torch::kFloat) {
  return test::random_tensor({s.images, s.tokens, 3 * s.heads * s.size}, seed, type);
}
at::Tensor random_grad(const Shape& s, uint64_t seed, at::ScalarType type = torch::kFloat) {
  return test::random_tensor({s.images, s.tokens, s.heads * s.size}, seed, type);
}

// The result and the gradient of qkv, through autograd.
std::vector<at::Tensor> with_gradient(const at::Tensor& qkv, int64_t heads, const at::Tensor& grad) {
  const at::Tensor leaf = qkv.detach().clone().requires_grad_(true);
  const at::Tensor out = attention(leaf, heads);
  out.backward(grad);
  return {out.detach(), leaf.grad()};
}
// The same by torch's operations in fp64.
std::vector<at::Tensor> exactly(const at::Tensor& qkv, int64_t heads, const at::Tensor& grad) {
  const at::Tensor wide = test::as_double(qkv);
  const AttentionOutput forward = ref::attention_forward(wide, heads, true, wide.size(1));
  return {forward.out, ref::attention_backward(test::as_double(grad), wide, forward)};
}

::testing::AssertionResult relatively_near(const at::Tensor& got, const at::Tensor& want, double tolerance) {
  return test::near(got, want, tolerance * want.abs().max().item<double>());
}

// One head of one column, two tokens: q = (0, ln 3), k = (0, 1), v = (4, 8), and 1 the gradient of both outputs.
const float kLn3 = std::log(3.0f);
at::Tensor small_qkv() { return torch::tensor({0.0f, 0.0f, 4.0f, kLn3, 1.0f, 8.0f}).view({1, 2, 3}); }

}  // namespace

// Scores: 0 0 | 0 ln 3. Probabilities P: 1/2 1/2 | 1/4 3/4. Outputs: (4 + 8) / 2 = 6 and 4 / 4 + 3 * 8 / 4 = 7.
// Gradients of v: columns of P summed, 3/4 and 5/4. Of the scores: P (v - output) = -1 1 | -3/4 3/4. Of q: their
// products with k, 1 and 3/4. Of k: with q, -3/4 ln 3 and 3/4 ln 3.
TEST(AttentionOp, ReproducesValuesWorkedByHandAtEveryLevel) {
  const at::Tensor out = torch::tensor({6.0, 7.0}).view({1, 2, 1});
  const double slope = 0.75 * kLn3;
  const at::Tensor grad = torch::tensor({1.0, -slope, 0.75, 0.75, slope, 1.25}).view({1, 2, 3});
  test::at_each_level([&](const std::string& level) {
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const auto got = with_gradient(small_qkv().to(type), 1, torch::ones({1, 2, 1}, type));
      EXPECT_TRUE(test::near(got[0], out, 2e-6)) << level;
      EXPECT_TRUE(test::near(got[1], grad, 2e-6)) << level;
    }
  });
  // log2 (1 + 1) = 1 and log2 (1 + 3) = 2
  for (const auto forward : {attention_forward, ref::attention_forward})
    EXPECT_TRUE(test::near(forward(small_qkv(), 1, true, 2).log_sum, torch::tensor({1.0, 2.0}).view({1, 1, 2}), 1e-6));
}

// The first query alone: probabilities 1/2 1/2, output 6. Gradients of v: 1/2, 1/2; of the scores -1 1, so of q
// 0 * -1 + 1 * 1 = 1, and of k their products with q = 0.
TEST(AttentionOp, ComputesTheFirstQueriesAlone) {
  test::at_each_level([&](const std::string& level) {
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const at::Tensor qkv = small_qkv().to(type).requires_grad_(true), out = attention(qkv, 1, 1);
      EXPECT_TRUE(test::near(out, torch::tensor({6.0}).view({1, 1, 1}), 2e-6)) << level;
      out.sum().backward();
      EXPECT_TRUE(test::near(qkv.grad(), torch::tensor({1.0, 0.0, 0.5, 0.0, 0.0, 0.5}).view({1, 2, 3}), 2e-6)) << level;
    }
  });
}

// Queries of one block and of several, keys of one and two.
TEST(AttentionOp, TheFirstQueriesAreThoseOfAllAtEveryLevel) {
  for (const auto& [s, queries] :
       {std::pair{Shape{2, 50, 3, 32}, int64_t{1}}, {{2, 17, 1, 5}, 17}, {{1, 400, 2, 64}, 90}}) {
    const at::Tensor qkv = random_qkv(s, 1), grad = random_grad(s, 2).narrow(1, 0, queries);
    at::Tensor padded = torch::zeros({s.images, s.tokens, s.heads * s.size});
    padded.narrow(1, 0, queries).copy_(grad);
    test::at_each_level([&, &s = s, &queries = queries](const std::string& level) {
      const auto all = with_gradient(qkv, s.heads, padded);
      const at::Tensor leaf = qkv.clone().requires_grad_(true), out = attention(leaf, s.heads, queries);
      EXPECT_TRUE(relatively_near(out, all[0].narrow(1, 0, queries), 1e-5)) << level << " " << s;
      out.backward(grad);
      EXPECT_TRUE(relatively_near(leaf.grad(), all[1], 1e-5)) << level << " " << s;
    });
  }
  EXPECT_THROW(attention(small_qkv(), 1, 3), Error);
  EXPECT_THROW(attention(small_qkv(), 1, 0), Error);
}

// Shapes of 197 tokens, 400 (two blocks of keys), 780 (three); heads of 1 to 400 columns (more than a block).
TEST(AttentionOp, AgreesWithTheReferenceAtEveryLevel) {
  std::vector<Shape> shapes{{1, 400, 1, 64}, {1, 780, 2, 7}, {1, 21, 1, 400}, {3, 40, 2, 1}};
  for (const int64_t tokens : {1, 2, 17, 50, 65, 197, 200})
    for (const auto& [heads, size] : {std::pair{3, 5}, {2, 32}, {2, 64}, {1, 80}, {1, 192}})
      shapes.push_back({tokens < 60 ? 2 : 1, tokens, heads, size});
  for (const Shape& s : shapes) {
    const at::Tensor qkv = random_qkv(s, 1), grad = random_grad(s, 2);
    const auto want = exactly(qkv, s.heads, grad);
    test::at_each_level([&](const std::string& level) {
      const auto got = with_gradient(qkv, s.heads, grad);
      EXPECT_TRUE(relatively_near(got[0], want[0], 1e-5)) << level << " " << s;
      EXPECT_TRUE(relatively_near(got[1], want[1], 1e-5)) << level << " " << s;
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(attention(qkv, s.heads), got[0])) << level << " " << s;
    });
  }
}

// Scores of +-10^4: each query gives all its weight to the keys of its sign, of which 3 of 8 are negative. So outputs
// are means of values; the gradients of q and k cancel, of v are counted by hand.
TEST(AttentionOp, LargeScoresDoNotOverflow) {
  const at::Tensor sign = torch::tensor({1.0f, -1.0f, 1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f});
  const at::Tensor value = torch::arange(8, torch::kFloat);
  const at::Tensor qkv = torch::stack({100 * sign, 100 * sign, value}, 1).unsqueeze(0);  // [1,8,3]
  const at::Tensor negative = sign < 0;
  const double of_negative = (1 + 4 + 6) / 3.0, of_positive = (0 + 2 + 3 + 5 + 7) / 5.0;
  test::at_each_level([&](const std::string& level) {
    const auto got = with_gradient(qkv, 1, torch::ones({1, 8, 1}));
    EXPECT_TRUE(test::near(got[0].flatten(), torch::where(negative, of_negative, of_positive), 1e-5)) << level;
    // Each value is in the mean of as many queries as that is divided by. The log sum is near 14427, where fp32 has
    // steps of 2^-10: probabilities in the backward pass have that error.
    EXPECT_TRUE(test::near(got[1].select(2, 2).flatten(), torch::ones({8}), 1e-3)) << level;
    EXPECT_TRUE(got[1].isfinite().all().item<bool>()) << level;
  });
}

TEST(AttentionOp, NotANumberStaysInItsImageAndHead) {
  test::at_each_level([&](const std::string& level) {
    at::Tensor qkv = random_qkv({2, 20, 2, 8}, 1);
    qkv[1][3][16 + 8 + 2] = std::nan("");  // a key of the second head of the second image
    const auto got = with_gradient(qkv, 2, torch::ones({2, 20, 16}));
    at::Tensor wrong = torch::zeros({2, 20, 2, 8}, torch::kBool);
    wrong[1].select(1, 1).fill_(true);
    EXPECT_TRUE(torch::equal(got[0].isnan(), wrong.view({2, 20, 16}))) << level;
    EXPECT_TRUE(got[1][0].isfinite().all().item<bool>()) << level;
  });
}

// With 4 threads the queries of two heads are split.
TEST(AttentionOp, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Shape& s : {Shape{1, 197, 2, 64}, {1, 500, 1, 40}, {3, 50, 3, 32}})
    test::at_each_level([&](const std::string& level) {
      const at::Tensor qkv = random_qkv(s, 1), grad = random_grad(s, 2);
      at::set_num_threads(1);
      const auto one = with_gradient(qkv, s.heads, grad);
      for (const int n : {2, 4}) {
        at::set_num_threads(n);
        const auto more = with_gradient(qkv, s.heads, grad);
        EXPECT_TRUE(torch::equal(one[0], more[0])) << level << " " << s << ", threads " << n;
        EXPECT_TRUE(torch::equal(one[1], more[1])) << level << " " << s << ", threads " << n;
      }
    });
  at::set_num_threads(threads);
}

// A matrix of scores would be 2 * 200 * 200 * 4 = 320,000 bytes; results are 2 * 200 * 8 * 4 = 12,800, log sums 1,600.
TEST(AttentionOp, AllocatesNothingButItsResults) {
  const at::Tensor qkv = random_qkv({1, 200, 2, 4}, 1), grad = random_grad({1, 200, 2, 4}, 2);
  const auto forward = attention_forward(qkv, 2, true, 200);
  const test::LiveBytes bytes;
  const auto again = attention_forward(qkv, 2, true, 200);
  EXPECT_LE(bytes.count(), 200 * 8 * 4 + 200 * 2 * 4);
  const at::Tensor qkv_grad = attention_backward(grad, qkv, forward);
  EXPECT_LE(bytes.count(), 4 * 200 * 8 * 4 + 200 * 2 * 4);
}

TEST(AttentionOp, GradientsAgreeWithCentralDifferences) {
  const Shape s{2, 5, 2, 3};
  const at::Tensor qkv = random_qkv(s, 1, torch::kDouble), upstream = random_grad(s, 2, torch::kDouble);
  EXPECT_LT(test::gradient_error([&] { return (attention(qkv, 2) * upstream).sum(); }, {qkv}), 1e-8);
}

// bf16 has 8 significant bits: products and probabilities are rounded to 2^-9 of their size.
TEST(AttentionOp, HalfPrecisionAgreesToItsRounding) {
  const Shape s{2, 30, 2, 16};
  const at::Tensor qkv = random_qkv(s, 1, torch::kBFloat16), grad = random_grad(s, 2, torch::kBFloat16);
  const auto want = exactly(qkv, 2, grad), got = with_gradient(qkv, 2, grad);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(got[i].scalar_type(), torch::kBFloat16);
    EXPECT_TRUE(relatively_near(got[i], want[i], 0.02)) << i;
  }
}

TEST(AttentionOp, TakesStridedAndEmptyInputs) {
  const at::Tensor qkv = random_qkv({2, 20, 2, 8}, 1);
  const at::Tensor strided = qkv.transpose(0, 2).contiguous().transpose(0, 2);
  ASSERT_FALSE(strided.is_contiguous());
  EXPECT_TRUE(torch::equal(attention(strided, 2), attention(qkv, 2)));
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const auto& [images, tokens] : {std::pair{0, 5}, {3, 0}}) {
      const at::Tensor none = torch::zeros({images, tokens, 24}, type);
      const auto got = with_gradient(none, 2, torch::zeros({images, tokens, 8}, type));
      EXPECT_EQ(got[0].sizes(), (std::vector<int64_t>{images, tokens, 8}));
      EXPECT_EQ(got[1].sizes(), none.sizes());
    }
}

TEST(AttentionOp, WrongInputsAreRefused) {
  const auto message = [](const at::Tensor& qkv, int64_t heads) {
    return testing::error_text([&] { attention(qkv, heads); });
  };
  EXPECT_EQ(message(torch::zeros({2, 5, 24}), 5),
            "attention with 5 heads needs qkv [B,S,3D] where D is a multiple of the heads, got [2, 5, 24]");
  EXPECT_NE(message(torch::zeros({5, 24}), 2), "");
  EXPECT_NE(message(torch::zeros({2, 5, 0}), 2), "");
  EXPECT_EQ(message(torch::zeros({2, 5, 24}), 0), "attention needs at least one head, got 0");
  EXPECT_EQ(message(torch::zeros({2, 5, 24}, torch::kLong), 2),
            "attention needs qkv of a floating type, got Long; convert it first");
  EXPECT_EQ(testing::error_text([] {
              const at::Tensor qkv = random_qkv({1, 3, 1, 2}, 1).requires_grad_(true);
              torch::autograd::grad({attention(qkv, 1).sum()}, {qkv}, {}, true, /*create_graph=*/true);
            }),
            "attention has no second derivative; call backward without create_graph");
}

}  // namespace sparsight::attention_op_test
