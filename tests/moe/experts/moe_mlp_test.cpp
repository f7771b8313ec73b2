#include "sparsight/moe/experts/moe_mlp.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::moe_mlp_test {
namespace {

// Groups of 3, 0, 1, 4 rows: ragged, with an empty expert.
at::Tensor ragged_offsets() { return torch::tensor({0, 3, 3, 4, 8}, torch::kLong); }

MoeMlpWeights random_weights(int64_t experts, int64_t width, int64_t hidden, at::ScalarType type = torch::kDouble) {
  return {test::random_tensor({experts, width, hidden}, 1, type), test::random_tensor({experts, hidden}, 2, type),
          test::random_tensor({experts, hidden, width}, 3, type), test::random_tensor({experts, width}, 4, type)};
}

// The same by single rows, with autograd's own backward pass.
at::Tensor by_rows(const at::Tensor& rows, const at::Tensor& offsets, const MoeMlpWeights& w, Activation activation) {
  std::vector<at::Tensor> out;
  for (int64_t e = 0; e + 1 < offsets.size(0); ++e)
    for (int64_t r = offsets[e].item<int64_t>(); r < offsets[e + 1].item<int64_t>(); ++r)
      out.push_back(activate(rows[r].matmul(w.w1[e]) + w.b1[e], activation).matmul(w.w2[e]) + w.b2[e]);
  return torch::stack(out);
}

}  // namespace

TEST(MoeMlp, GradientsAgreeWithCentralDifferences) {
  for (const Activation activation : {Activation::gelu, Activation::relu, Activation::silu}) {
    const MoeMlpWeights w = random_weights(4, 3, 5);
    const at::Tensor rows = test::random_tensor({8, 3}, 5), upstream = test::random_tensor({8, 3}, 6);
    const auto loss = [&] { return (moe_mlp(rows, ragged_offsets(), w, activation) * upstream).sum(); };
    EXPECT_LT(test::gradient_error(loss, {rows, w.w1, w.b1, w.w2, w.b2}), 1e-7);
    // The empty expert's gradients are exactly 0.
    for (const at::Tensor& parameter : {w.w1, w.b1, w.w2, w.b2})
      EXPECT_TRUE(torch::equal(parameter.grad()[1], torch::zeros_like(parameter.grad()[1])));
  }
}

TEST(MoeMlp, AgreesWithRowByRowEvaluationInEveryType) {
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kBFloat16}) {
    MoeMlpWeights w = random_weights(4, 24, 40, type);
    for (at::Tensor* t : {&w.w1, &w.b1, &w.w2, &w.b2}) *t = *t * 0.2;
    const at::Tensor rows = test::random_tensor({8, 24}, 5, type);
    const at::Tensor got = moe_mlp(rows, ragged_offsets(), w, Activation::gelu);
    const MoeMlpWeights wide{w.w1.to(torch::kDouble), w.b1.to(torch::kDouble), w.w2.to(torch::kDouble),
                             w.b2.to(torch::kDouble)};
    const at::Tensor expected = by_rows(rows.to(torch::kDouble), ragged_offsets(), wide, Activation::gelu);
    const double tol = type == torch::kDouble ? 1e-12 : type == torch::kFloat ? 1e-5 : 3e-2;
    EXPECT_TRUE(torch::allclose(got.to(torch::kDouble), expected, tol, tol)) << type;
    EXPECT_EQ(got.scalar_type(), type);
  }
}

TEST(MoeMlp, NoRowsAtAllGiveAnEmptyResultAndZeroGradients) {
  const MoeMlpWeights w = random_weights(3, 4, 6);
  w.w1.requires_grad_(true);
  const at::Tensor out =
      moe_mlp(torch::empty({0, 4}, torch::kDouble), torch::zeros({4}, torch::kLong), w, Activation::gelu);
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{0, 4}));
  out.sum().backward();
  EXPECT_TRUE(torch::equal(w.w1.grad(), torch::zeros_like(w.w1)));
}

}  // namespace sparsight::moe_mlp_test
