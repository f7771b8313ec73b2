#include "sparsight/ops/sort_by_expert.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/ops/ref/sort_by_expert.h"
#include "tests/support/random_tensor.h"

namespace sparsight::sort_by_expert_test {
namespace {

void expect_same_groups(const at::Tensor& expert, const at::Tensor& kept, int64_t experts) {
  const ExpertGroups fast = sort_by_expert(expert, kept, experts), slow = ref::sort_by_expert(expert, kept, experts);
  EXPECT_TRUE(torch::equal(fast.order, slow.order));
  EXPECT_TRUE(torch::equal(fast.offsets, slow.offsets));
  EXPECT_TRUE(torch::equal(count_by_expert(expert, experts), ref::count_by_expert(expert, experts)));
}

}  // namespace

TEST(SortByExpert, GroupsByExpertAndKeepsTheOrderWithin) {
  // Assignments 0..5 go to experts 2 0 2 3 0 2; assignment 2 is dropped. Expert 0 has 1, 4; expert 2 has 0, 5; 3 has 3.
  const at::Tensor expert = torch::tensor({2, 0, 2, 3, 0, 2}, torch::kLong);
  const at::Tensor kept = torch::tensor({1, 1, 0, 1, 1, 1}, torch::kBool);
  const ExpertGroups groups = sort_by_expert(expert, kept, 4);
  EXPECT_TRUE(torch::equal(groups.order, torch::tensor({1, 4, 0, 5, 3}, torch::kLong)));
  EXPECT_TRUE(torch::equal(groups.offsets, torch::tensor({0, 2, 2, 4, 5}, torch::kLong)));
  EXPECT_TRUE(torch::equal(count_by_expert(expert, 4), torch::tensor({2, 0, 3, 1}, torch::kLong)));
}

TEST(SortByExpert, AgreesWithTheReferenceOnRaggedEmptyAndOneSidedInputs) {
  const at::Tensor some = test::random_tensor({1000}, 1) > -1;
  const at::Tensor ragged = (test::random_tensor({1000}, 2).abs() * 4).clamp(0, 15).to(torch::kLong);
  expect_same_groups(ragged, some, 16);
  expect_same_groups(torch::full({1000}, 3, torch::kLong), some, 16);  // all to one
  expect_same_groups(torch::zeros({1000}, torch::kLong), some, 1);     // one expert
  expect_same_groups(ragged, torch::zeros({1000}, torch::kBool), 16);  // all dropped
  expect_same_groups(torch::empty({0}, torch::kLong), torch::empty({0}, torch::kBool), 16);
}

}  // namespace sparsight::sort_by_expert_test
