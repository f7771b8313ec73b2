#include "sparsight/ops/grouped_linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/grouped_linear.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"

namespace sparsight::grouped_linear_test {
namespace {

// Groups of 3, 0, 1, 4 rows: ragged, with an empty expert.
at::Tensor ragged_offsets() { return torch::tensor({0, 3, 3, 4, 8}, torch::kLong); }

// Rows of 4 experts of which the second has none.
struct Example {
  at::Tensor rows, offsets, weight, bias, upstream;
  Example(int64_t count, int64_t inputs, int64_t outputs)
      : rows(test::random_tensor({count, inputs}, 1, torch::kFloat)),
        offsets(torch::tensor({int64_t{0}, count / 3, count / 3, count / 2, count}, torch::kLong)),
        weight(test::random_tensor({4, inputs, outputs}, 2, torch::kFloat)),
        bias(test::random_tensor({4, outputs}, 3, torch::kFloat)),
        upstream(test::random_tensor({count, outputs}, 4, torch::kFloat)) {}
};

std::vector<at::Tensor> listed(const at::Tensor& out, const GroupedLinearGradients& g) {
  return {out, g.rows, g.weight, g.bias};
}

std::vector<at::Tensor> on_kernels(const Example& e) {
  return listed(cpu::grouped_linear_forward(e.rows, e.offsets, e.weight, e.bias),
                cpu::grouped_linear_backward(e.upstream, e.rows, e.offsets, e.weight, {}));
}

}  // namespace

// Each of n additions of a chain rounds its partial sum by up to 2^-24 of it. Partial sums of n products of normal
// numbers are of order sqrt(n), so the roundings, being independent, add up to about sqrt(n) * sqrt(n) 2^-24 = n 2^-24;
// 16 times that leaves room for the largest of all elements.
TEST(GroupedLinear, KernelsAgreeWithTheReferenceAtEveryLevel) {
  test::at_each_level([](const std::string& level) {
    for (const auto& [count, inputs, outputs] :
         {std::tuple{0, 5, 3}, {1, 1, 1}, {7, 33, 50}, {100, 385, 97}, {900, 64, 32}, {650, 97, 400}, {40, 800, 7}}) {
      Example e(count, inputs, outputs);
      using test::as_double;
      const std::vector<at::Tensor> want = listed(
          ref::grouped_linear_forward(as_double(e.rows), e.offsets, as_double(e.weight), as_double(e.bias)),
          ref::grouped_linear_backward(as_double(e.upstream), as_double(e.rows), e.offsets, as_double(e.weight), {}));
      const std::vector<int64_t> terms{inputs + 1, outputs, count, count};
      for (const bool transposed : {false, true}) {  // how the weight lies
        if (transposed) e.weight = e.weight.mT().contiguous().mT();
        const std::vector<at::Tensor> got = on_kernels(e);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_TRUE(test::near(got[i], want[i], std::ldexp(16.0 * static_cast<double>(terms[i] + 1), -24)))
              << level << " " << count << " " << inputs << " " << outputs << " " << transposed << ", result " << i;
      }
    }
  });
}

// Without inputs the result is the bias, and the gradient of that the sum over its expert's rows.
TEST(GroupedLinear, WidthsMayBeZero) {
  test::at_each_level([](const std::string& level) {
    for (const auto& [inputs, outputs] : {std::pair{0, 5}, {5, 0}, {0, 0}}) {
      const Example e(20, inputs, outputs);
      const at::Tensor expert = torch::repeat_interleave(torch::arange(4), e.offsets.diff());
      const at::Tensor out = grouped_linear_forward(e.rows, e.offsets, e.weight, e.bias);
      EXPECT_TRUE(test::near(out, e.bias.index_select(0, expert), 0)) << level;
      const GroupedLinearGradients g = grouped_linear_backward(e.upstream, e.rows, e.offsets, e.weight, {});
      EXPECT_TRUE(test::near(g.rows, torch::zeros({20, inputs}), 0)) << level;
      EXPECT_EQ(g.weight.sizes(), e.weight.sizes());
      EXPECT_TRUE(test::near(g.bias, torch::zeros({4, outputs}).index_add_(0, expert, e.upstream), 1e-5)) << level;
    }
  });
}

TEST(GroupedLinear, ComputesTheGradientsThatAreAskedFor) {
  const Example e(90, 40, 33);
  const GroupedLinearGradients all = cpu::grouped_linear_backward(e.upstream, e.rows, e.offsets, e.weight, {});
  for (const bool weight : {true, false})
    for (const bool bias : {true, false})
      for (const auto backward : {cpu::grouped_linear_backward, ref::grouped_linear_backward}) {
        const GroupedLinearGradients some =
            backward(e.upstream, e.rows, e.offsets, e.weight, {.weight = weight, .bias = bias});
        EXPECT_TRUE(torch::allclose(some.rows, all.rows, 1e-5, 1e-4));
        EXPECT_EQ(some.weight.defined(), weight);
        EXPECT_EQ(some.bias.defined(), bias);
        if (weight) {
          EXPECT_TRUE(torch::allclose(some.weight, all.weight, 1e-5, 1e-4));
        }
        if (bias) {
          EXPECT_TRUE(torch::allclose(some.bias, all.bias, 1e-5, 1e-4));
        }
      }
}

TEST(GroupedLinear, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  test::at_each_level([](const std::string& level) {
    for (const auto& [rows, outputs, transposed] :
         {std::tuple{5000, 33, false}, {5000, 9, true}, {700, 430, false}, {430, 700, true}, {150, 50, true}}) {
      Example e(rows, 40, outputs);
      if (transposed) e.weight = e.weight.mT().contiguous().mT();
      at::set_num_threads(1);
      const std::vector<at::Tensor> one = on_kernels(e);
      for (const int n : {2, 4, 16}) {
        at::set_num_threads(n);
        const std::vector<at::Tensor> more = on_kernels(e);
        for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], more[i])) << level << " " << n << i;
      }
    }
  });
  at::set_num_threads(threads);
}

TEST(GroupedLinear, GradientsAgreeWithCentralDifferences) {
  const at::Tensor rows = test::random_tensor({8, 3}, 1), weight = test::random_tensor({4, 3, 5}, 2);
  const at::Tensor bias = test::random_tensor({4, 5}, 3), upstream = test::random_tensor({8, 5}, 4);
  const auto with_bias = [&] { return (grouped_linear(rows, ragged_offsets(), weight, bias) * upstream).sum(); };
  EXPECT_LT(test::gradient_error(with_bias, {rows, weight, bias}), 1e-8);
  EXPECT_TRUE(torch::equal(weight.grad()[1], torch::zeros_like(weight.grad()[1])));  // the empty expert
  EXPECT_TRUE(torch::equal(bias.grad()[1], torch::zeros_like(bias.grad()[1])));
  const auto without = [&] { return (grouped_linear(rows, ragged_offsets(), weight) * upstream).sum(); };
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
