#include "sparsight/ops/sum_of_squares.h"

#include <cmath>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/ops/ref/sum_of_squares.h"
#include "tests/support/random_tensor.h"

namespace sparsight {

TEST(SumOfSquares, AddsAllTensorsByHand) {
  EXPECT_EQ(sum_of_squares({}), 0);
  EXPECT_EQ(sum_of_squares({torch::tensor({1.f, 2.f}), torch::tensor({3.0}, torch::kDouble), torch::zeros({0}),
                            torch::tensor({4.f}).to(torch::kBFloat16)}),
            1 + 4 + 9 + 16);
  EXPECT_EQ(sum_of_squares({torch::arange(6, torch::kFloat).slice(0, 0, 6, 2)}), 4 + 16);  // 0, 2, 4
  EXPECT_EQ(sum_of_squares({torch::tensor({2.f}).expand({3})}), 12);
}

TEST(SumOfSquares, AgreesWithTheReferenceAtEveryLevelAndSize) {
  for (const std::string& name : isa_names()) {
    set_isa(name);
    for (const auto type : {torch::kFloat, torch::kDouble})
      for (const int64_t count : {1, 7, 2049, 16385, 50001}) {
        const at::Tensor x = test::random_tensor({count}, 1, type);
        const double expected = ref::sum_of_squares(x);
        EXPECT_NEAR(sum_of_squares({x}), expected, expected * (type == torch::kFloat ? 1e-6 : 1e-13)) << name;
      }
  }
  set_isa("");
}

TEST(SumOfSquares, HasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<at::Tensor> x{test::random_tensor({100003}, 1, torch::kFloat),
                                  test::random_tensor({70, 900}, 2, torch::kFloat)};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = sum_of_squares(x);
  for (const int count : {2, 4}) {
    at::set_num_threads(count);
    EXPECT_EQ(sum_of_squares(x), one) << count;
  }
  at::set_num_threads(threads);
}

}  // namespace sparsight
