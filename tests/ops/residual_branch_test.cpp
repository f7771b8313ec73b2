#include "sparsight/ops/residual_branch.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/ops/expert_cases.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::residual_branch_test {
namespace {

using Tensors = std::vector<at::Tensor>;
struct Half {
  Tensors leaves;                                   // x first
  std::function<at::Tensor(const Tensors&)> fused;  // the operation
  std::function<at::Tensor(const Tensors&)> exact;  // the same in torch's operations
};

constexpr double kEpsilon = 1e-6;
at::Tensor normal(const Tensors& v) { return torch::layer_norm(v[0], {v[0].size(-1)}, v[1], v[2], kEpsilon); }

Tensors random_leaves(const std::vector<std::vector<int64_t>>& sizes, at::ScalarType type) {
  Tensors leaves;
  for (size_t i = 0; i < sizes.size(); ++i) leaves.push_back(test::random_tensor(sizes[i], i + 1, type) * 0.5);
  return leaves;
}

// A drop for rows of `width` columns: a quarter of the elements and a third of the rows, or only one of the two.
enum class Drops { none, elements, rows, both };
BranchDrop make_drop(Drops drops, int64_t rows, int64_t width) {
  BranchDrop drop;
  if (drops == Drops::elements || drops == Drops::both) drop.dropout = dropout_mask({rows, width}, 0.75, {7, "drop"});
  if (drops == Drops::rows || drops == Drops::both)
    drop.row_factor = (torch::arange(rows).remainder(3) != 0).to(torch::kFloat) * 1.5;
  return drop;
}
at::Tensor times_factors(const at::Tensor& y, const BranchDrop& drop) {
  at::Tensor rows = y.reshape({-1, y.size(-1)});
  if (drop.dropout.defined()) rows = rows * dropout_factors(drop.dropout, y.size(-1), y.detach());
  if (drop.row_factor.defined()) rows = rows * drop.row_factor.to(y.scalar_type()).unsqueeze(1);
  return rows.view(y.sizes());
}

Half attention_half(int64_t images, int64_t tokens, int64_t heads, int64_t size, bool bias, Drops drops = Drops::none,
                    at::ScalarType type = torch::kFloat) {
  const int64_t width = heads * size;
  std::vector<std::vector<int64_t>> sizes{{images, tokens, width}, {width},        {width},
                                          {3 * width, width},      {width, width}, {width}};
  if (bias) sizes.push_back({3 * width});
  const BranchDrop drop = make_drop(drops, images * tokens, width);
  const auto qkv_bias = [bias](const Tensors& v) { return bias ? v[6] : at::Tensor(); };
  return {
      random_leaves(sizes, type),
      [=](const Tensors& v) {
        return attention_residual(v[0], {v[1], v[2], kEpsilon}, {v[3], qkv_bias(v), v[4], v[5], heads}, drop);
      },
      [=](const Tensors& v) {
        const at::Tensor parts =
            torch::linear(normal(v), v[3], qkv_bias(v)).view({images, tokens, 3, heads, size}).permute({2, 0, 3, 1, 4});
        const at::Tensor scores = parts[0].matmul(parts[1].mT()) / std::sqrt(static_cast<double>(size));
        const at::Tensor out = scores.softmax(-1).matmul(parts[2]).transpose(1, 2).reshape(v[0].sizes());
        return v[0] + times_factors(torch::linear(out, v[4], v[5]), drop);
      }};
}

Half mlp_half(int64_t rows, int64_t width, int64_t hidden, Drops drops = Drops::none,
              at::ScalarType type = torch::kFloat) {
  const BranchDrop drop = make_drop(drops, rows, width);
  return {random_leaves({{rows, width}, {width}, {width}, {hidden, width}, {hidden}, {width, hidden}, {width}}, type),
          [drop](const Tensors& v) {
            return mlp_residual(v[0], {v[1], v[2], kEpsilon}, {v[3], v[4], v[5], v[6]}, drop);
          },
          [drop](const Tensors& v) {
            const at::Tensor branch = torch::linear(torch::gelu(torch::linear(normal(v), v[3], v[4])), v[5], v[6]);
            return v[0] + times_factors(branch, drop);
          }};
}

// The result and the gradients of all leaves, of which those from `frozen` on require none.
Tensors with_gradients(const std::function<at::Tensor(const Tensors&)>& layer, const Tensors& from, at::ScalarType type,
                       size_t frozen = 100) {
  Tensors leaves;
  for (size_t i = 0; i < from.size(); ++i)
    leaves.push_back(from[i].detach().to(type).clone().requires_grad_(i < frozen));
  const at::Tensor out = layer(leaves);
  out.backward(test::random_tensor(out.sizes(), 99).to(type));
  Tensors all{out.detach()};
  for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad());
  return all;
}

// One token, ragged sizes, rows of several tasks, a hidden layer in parts (400 columns) and, with 4700 rows, without.
std::vector<Half> halves() {
  return {attention_half(1, 1, 1, 4, true),
          attention_half(2, 7, 2, 5, false),
          attention_half(3, 50, 2, 17, true),
          mlp_half(1, 8, 12),
          mlp_half(7, 24, 40),
          mlp_half(150, 33, 400),
          mlp_half(4700, 8, 400),
          attention_half(2, 7, 2, 5, false, Drops::elements),
          attention_half(3, 50, 2, 17, true, Drops::both),
          mlp_half(7, 24, 40, Drops::rows),
          mlp_half(150, 33, 400, Drops::both),
          mlp_half(4700, 8, 400, Drops::elements)};
}

}  // namespace

// x = (0 3 0) is normalised to (-1 2 -1) / sqrt 2. All weights of the MLP are 1, with a bias b1 of 1: its hidden unit
// is relu(0 + 1) = 1, and the result x + 1 + b2.
TEST(ResidualBranch, ReproducesValuesWorkedByHandAtEveryLevel) {
  test::at_each_level([](const std::string& level) {
    const at::Tensor x = torch::tensor({{0.f, 3.f, 0.f}}), ones = torch::ones({3}), zeros = torch::zeros({3});
    const at::Tensor out = mlp_residual(x, {ones, zeros, 0},
                                        {torch::ones({1, 3}), torch::ones({1}), torch::ones({3, 1}),
                                         torch::tensor({10.f, 20.f, 30.f}), Activation::relu});
    EXPECT_TRUE(test::near(out, torch::tensor({{11.0, 24.0, 31.0}}), 1e-5)) << level;
  });
}

// The branch above is (11 21 31). Its dropout keeps the outer columns, times 1.5, and its row counts twice: the result
// is x + (33 0 93). A row with a factor of 0 is x itself, and so is its gradient.
TEST(ResidualBranch, DropsInTheEpilogueAsWorkedByHandAtEveryLevel) {
  test::at_each_level([](const std::string& level) {
    const at::Tensor x = torch::tensor({{0.f, 3.f, 0.f}, {0.f, 3.f, 0.f}}).requires_grad_();
    const BranchDrop drop{{torch::tensor({{5}, {7}}, torch::kByte), 1.5f}, torch::tensor({2.f, 0.f})};
    const DenseMlpWeights weights{torch::ones({1, 3}), torch::ones({1}), torch::ones({3, 1}),
                                  torch::tensor({10.f, 20.f, 30.f}).requires_grad_(), Activation::relu};
    const at::Tensor out = mlp_residual(x, {torch::ones({3}), torch::zeros({3}), 0}, weights, drop);
    EXPECT_TRUE(test::near(out, torch::tensor({{33.0, 3.0, 93.0}, {0.0, 3.0, 0.0}}), 1e-4)) << level;
    out.sum().backward();
    EXPECT_TRUE(torch::equal(weights.b2.grad(), torch::tensor({3.f, 0.f, 3.f}))) << level;  // 2 * 1.5
    EXPECT_TRUE(torch::equal(x.grad()[1], torch::ones({3}))) << level;
  });
}

TEST(ResidualBranch, AgreesWithTorchAtEveryLevelAndSize) {
  test::at_each_level([](const std::string& level) {
    int number = 0;
    for (const Half& half : halves()) {
      const Tensors got = with_gradients(half.fused, half.leaves, torch::kFloat);
      const Tensors want = with_gradients(half.exact, half.leaves, torch::kDouble);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(test::near(got[i], want[i], 2e-5 * want[i].abs().max().item<double>() + 1e-6))
            << level << ", case " << number << ", tensor " << i;
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(half.fused(half.leaves), got[0])) << level << ", case " << number;
      ++number;
    }
  });
}

TEST(ResidualBranch, GradientsFollowDifferences) {
  for (const Half& half :
       {attention_half(2, 3, 2, 2, true, Drops::none, torch::kDouble),
        attention_half(1, 2, 1, 3, false, Drops::both, torch::kDouble), mlp_half(3, 5, 4, Drops::none, torch::kDouble),
        mlp_half(3, 5, 4, Drops::both, torch::kDouble)}) {
    const at::Tensor direction = test::random_tensor(half.leaves[0].sizes(), 9);
    EXPECT_LT(test::gradient_error([&] { return (half.fused(half.leaves) * direction).sum(); }, half.leaves), 1e-7);
  }
}

TEST(ResidualBranch, HasTheSameBitsForAnyNumberOfThreads) {
  for (const Half& half : halves()) {
    const auto with_threads = [&](int count) {
      const test::ThreadCount threads(count);
      return with_gradients(half.fused, half.leaves, torch::kFloat);
    };
    const Tensors one = with_threads(1);
    for (const int count : {2, 4}) {
      const Tensors other = with_threads(count);
      for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], other[i])) << count << ", " << i;
    }
  }
}

TEST(ResidualBranch, FrozenWeightsGetNoGradientAndChangeNone) {
  for (const Half& half : halves()) {
    const Tensors all = with_gradients(half.fused, half.leaves, torch::kFloat);
    const Tensors got = with_gradients(half.fused, half.leaves, torch::kFloat, /*frozen=*/1);
    EXPECT_TRUE(torch::equal(got[1], all[1]));
    for (size_t i = 2; i < got.size(); ++i) EXPECT_FALSE(got[i].defined()) << i;
  }
}

}  // namespace sparsight::residual_branch_test
