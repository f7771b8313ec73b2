#include "sparsight/dist/gradient_sum.h"

#include <gtest/gtest.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include "sparsight/dist/join.h"
#include "sparsight/ops/random_fill.h"
#include "tests/dist/ranks.h"

namespace sparsight {
namespace {

// Parameters of several sizes, one of them stored transposed, and one that never has a gradient.
std::vector<at::Tensor> parameters(at::ScalarType type) {
  const auto options = at::TensorOptions(type);
  return {at::empty({3, 5}, options), at::empty({7, 2}, options).t(), at::empty({1}, options), at::empty({11}, options),
          at::empty({2}, options)};
}

bool has_gradient(int64_t minibatch, size_t parameter) {
  return parameter != 4 && (parameter != 3 || minibatch % 2 == 1);
}

at::Tensor gradient(int64_t minibatch, size_t parameter, const at::Tensor& like) {
  const RandomStream stream(static_cast<uint64_t>(minibatch), "gradient", parameter);
  return at::empty_like(like).copy_(uniform_like(at::empty({0}, like.options()), like.sizes(), stream) - 0.5);
}

// What autograd adds up.
void accumulate(at::Tensor& parameter, const at::Tensor& more) {
  at::Tensor& grad = parameter.mutable_grad();
  if (grad.defined())
    grad.add_(more);
  else
    grad = more;
}

}  // namespace

TEST(GradientSum, G50_HasTheBitsOfOneProcess) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (int64_t ranks = 1; ranks <= 4; ++ranks)
      for (const int64_t rounds : {1, 3}) {
        std::vector<at::Tensor> want = parameters(type);
        for (int64_t m = 0; m < ranks * rounds; ++m)
          for (size_t p = 0; p < want.size(); ++p)
            if (has_gradient(m, p)) accumulate(want[p], gradient(m, p, want[p]));
        EXPECT_TRUE(test::none_failed(test::run_ranks(ranks, [&](const dist::GroupPtr& group) {
          std::vector<at::Tensor> own = parameters(type);
          dist::GradientSum sum(group, own);
          for (int step = 0; step < 2; ++step) {  // nothing is left of the step before
            for (at::Tensor& parameter : own) parameter.mutable_grad().reset();
            for (int64_t round = 0; round < rounds; ++round) {
              const int64_t m = round * ranks + group->rank();
              for (size_t p = 0; p < own.size(); ++p)
                if (has_gradient(m, p)) accumulate(own[p], gradient(m, p, own[p]));
              sum.add();
            }
            sum.finish();
            for (size_t p = 0; p < own.size(); ++p) {
              ASSERT_EQ(own[p].grad().defined(), want[p].grad().defined()) << p;
              if (!want[p].grad().defined()) continue;
              EXPECT_TRUE(own[p].grad().equal(want[p].grad())) << ranks << " ranks, parameter " << p;
              EXPECT_EQ(own[p].grad().strides(), want[p].grad().strides());
            }
          }
        })));
      }
}

// A rank that has experts for others has their minibatches' gradients too.
TEST(GradientSum, S32_AddsSeveralMinibatchesOfARankInOrder) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  constexpr int64_t kEach = 2, kRounds = 2;
  for (int64_t ranks = 1; ranks <= 3; ++ranks) {
    std::vector<at::Tensor> want = parameters(at::kFloat);
    for (int64_t m = 0; m < ranks * kEach * kRounds; ++m)
      for (size_t p = 0; p < want.size(); ++p)
        if (has_gradient(m, p)) accumulate(want[p], gradient(m, p, want[p]));
    EXPECT_TRUE(test::none_failed(test::run_ranks(ranks, [&](const dist::GroupPtr& group) {
      std::vector<at::Tensor> own = parameters(at::kFloat);
      dist::GradientSum sum(group, own);
      for (int64_t round = 0; round < kRounds; ++round) {
        std::vector<std::vector<at::Tensor>> gradients(kEach, std::vector<at::Tensor>(own.size()));
        for (int64_t i = 0; i < kEach; ++i) {
          const int64_t m = (round * ranks + group->rank()) * kEach + i;
          for (size_t p = 0; p < own.size(); ++p)
            if (has_gradient(m, p)) gradients[static_cast<size_t>(i)][p] = gradient(m, p, own[p]);
        }
        sum.add(gradients);
      }
      sum.finish();
      for (size_t p = 0; p < own.size(); ++p) {
        ASSERT_EQ(own[p].grad().defined(), want[p].grad().defined()) << p;
        if (want[p].grad().defined()) {
          EXPECT_TRUE(own[p].grad().equal(want[p].grad())) << ranks << " ranks, " << p;
        }
      }
    })));
  }
}

}  // namespace sparsight
