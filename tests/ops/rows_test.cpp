#include "sparsight/ops/rows.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/ops/ref/rows.h"
#include "sparsight/ops/sort_by_expert.h"
#include "tests/support/random_tensor.h"

namespace sparsight::rows_test {
namespace {

// A routing of `tokens` tokens, two assignments each, some dropped, over 5 experts of unequal load.
struct Case {
  at::Tensor token, order;
};

Case ragged_case(int64_t tokens) {
  const at::Tensor expert = (test::random_tensor({2 * tokens}, 1).abs() * 2).clamp(0, 4).to(torch::kLong);
  const at::Tensor kept = test::random_tensor({2 * tokens}, 2) > -0.5;
  const at::Tensor token = torch::arange(2 * tokens, torch::kLong).floor_divide(2);
  return {token, sort_by_expert(expert, kept, 5).order};
}

double tolerance(at::ScalarType type) {
  return type == torch::kDouble ? 1e-12 : type == torch::kFloat ? 1e-5 : 2e-2;  // bf16 and fp16 keep 8 and 11 bits
}

}  // namespace

TEST(Rows, MapOfAHandMadeRouting) {
  // Assignments (token): 0:0 1:0 2:1 3:1 4:2 5:2. Rows by expert hold assignments 3 0 5 1; 2 and 4 are dropped.
  const RowMap map =
      map_rows(torch::tensor({0, 0, 1, 1, 2, 2}, torch::kLong), torch::tensor({3, 0, 5, 1}, torch::kLong), 3);
  EXPECT_TRUE(torch::equal(map.row_token, torch::tensor({1, 0, 2, 0}, torch::kLong)));
  EXPECT_TRUE(torch::equal(map.token_rows, torch::tensor({1, 3, 0, 2}, torch::kLong)));  // token 0: rows 1, 3
  EXPECT_TRUE(torch::equal(map.token_offsets, torch::tensor({0, 2, 3, 4}, torch::kLong)));
}

TEST(Rows, AgreeWithTheReferenceInEveryTypeAndShape) {
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kBFloat16, torch::kHalf})
    for (const int64_t tokens : {0, 1, 300})
      for (const int64_t width : {1, 7, 64}) {
        const Case c = ragged_case(tokens);
        const RowMap map = map_rows(c.token, c.order, tokens), slow = ref::map_rows(c.token, c.order, tokens);
        ASSERT_TRUE(torch::equal(map.row_token, slow.row_token));
        ASSERT_TRUE(torch::equal(map.token_rows, slow.token_rows));
        ASSERT_TRUE(torch::equal(map.token_offsets, slow.token_offsets));
        const int64_t rows = map.row_token.size(0);
        const at::Tensor values = test::random_tensor({tokens, width}, 3, type);
        const at::Tensor row_values = test::random_tensor({rows, width}, 4, type);
        const double tol = tolerance(type);
        for (const at::Tensor& weight : {at::Tensor(), test::random_tensor({rows}, 5, torch::kFloat)}) {
          EXPECT_TRUE(
              torch::allclose(gather_rows(values, weight, map), ref::gather_rows(values, weight, map), tol, tol));
          EXPECT_TRUE(torch::allclose(scatter_add_rows(row_values, weight, map),
                                      ref::scatter_add_rows(row_values, weight, map), tol, tol));
        }
        EXPECT_TRUE(
            torch::allclose(dot_rows(row_values, values, map), ref::dot_rows(row_values, values, map), tol, 10 * tol));
      }
}

TEST(Rows, SumsHaveTheSameBitsForAnyNumberOfThreads) {
  const Case c = ragged_case(5000);
  const RowMap map = map_rows(c.token, c.order, 5000);
  const at::Tensor rows = test::random_tensor({map.row_token.size(0), 33}, 1, torch::kFloat);
  const at::Tensor weight = test::random_tensor({map.row_token.size(0)}, 2, torch::kFloat);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = scatter_add_rows(rows, weight, map);
  at::set_num_threads(3);
  const at::Tensor three = scatter_add_rows(rows, weight, map);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one, three));
}

}  // namespace sparsight::rows_test
