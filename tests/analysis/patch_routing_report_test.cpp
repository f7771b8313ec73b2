#include "sparsight/analysis/patch_routing_report.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/analysis/routing_fixture.h"

namespace sparsight::patch_routing_report_test {
namespace {

using testing::to_tensor;
using Counts = std::vector<int64_t>;

// 3 images of 2 x 2 patches, 2 experts that take 2 patches of each:
//   image 0: expert 0 takes 1 (gate .7), 0 (.3); expert 1 takes 3 (.6), 1 (.4)
//   image 1: expert 0 takes 2 (.5), 3 (.5);      expert 1 takes 3 (.9), 2 (.1)
//   image 2: expert 0 takes 0 (.8), 1 (.2);      expert 1 takes 0 (.5), 2 (.5)
Routing expert_choices() {
  Routing routing;
  routing.layer = "moe";
  routing.layout = {3, 4, 0, 2, 2};
  routing.tokens = 12;
  routing.experts = 2;
  routing.token = to_tensor<int64_t>({1, 0, 6, 7, 8, 9, 3, 1, 7, 6, 8, 10}, at::kLong);
  routing.expert = to_tensor<int64_t>({0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}, at::kLong);
  routing.gate = to_tensor<float>({.7f, .3f, .5f, .5f, .8f, .2f, .6f, .4f, .9f, .1f, .5f, .5f}, at::kFloat);
  routing.kept = to_tensor<int64_t>(std::vector<int64_t>(12, 1), at::kLong).to(at::kBool);
  return routing;
}

// One relevant patch an image: 1, 3 and 2, of classes 0, 1 and 0.
PatchRoutingReport example() {
  const Routing routing = expert_choices();
  return patch_routing_report(routing, at::tensor(Counts{0, 1, 0}, at::kLong),
                              patches_of_cells(at::tensor(Counts{1, 3, 2}, at::kLong), {2, 2}, routing.layout), 2);
}

TEST(PatchRoutingReport, CountsByHand) {
  const PatchRoutingReport report = example();
  EXPECT_EQ(report.patches, 4);
  EXPECT_EQ(report.images, (Counts{2, 1}));
  EXPECT_EQ(report.relevant, (Counts{2, 1}));
  // Image 0: patches 0, 1, 3; image 2: 0, 1, 2; image 1: 2, 3. The relevant one is among them each time.
  EXPECT_EQ(report.covered, (Counts{6, 2}));
  EXPECT_EQ(report.covered_relevant, (Counts{2, 1}));
  EXPECT_EQ(report.taken, (Counts{4, 4, 2, 2}));
  EXPECT_EQ(report.taken_relevant, (Counts{1, 2, 1, 1}));
  EXPECT_EQ(report.reached, (Counts{1, 2, 1, 1}));
  // Image 0: expert 0's best is 1 (right), expert 1's is 3. Image 2: 0 and, of equal gates the first, 0. Image 1: of
  // equal gates the first, 2, and 3 (right).
  EXPECT_EQ(report.largest, (Counts{1, 0, 0, 1}));
}

TEST(PatchRoutingReport, P73_P76_Shares) {
  const PatchRoutingReport report = example();
  EXPECT_EQ(*report.reached_share(0, 0), 0.5);
  EXPECT_EQ(*report.reached_share(0, 1), 1);
  EXPECT_EQ(*report.largest_share(0, 0), 0.5);
  EXPECT_EQ(*report.largest_share(0, 1), 0);
  EXPECT_EQ(report.best_expert(0), 0);
  EXPECT_EQ(report.best_expert(1), 1);
  EXPECT_EQ(*report.kept_share(0), 1);
  EXPECT_EQ(*report.dropped_irrelevant_share(0), 1);  // patch 2 of image 0 and 3 of image 2
  // Expert 0 leaves patches 2, 3 of image 0 and 2, 3 of image 2, of which one is relevant.
  EXPECT_EQ(*report.dropped_irrelevant_share(0, 0), 0.75);
  EXPECT_EQ(*report.dropped_irrelevant_share(0, 1), 1);
}

TEST(PatchRoutingReport, BatchesAddUp) {
  PatchRoutingReport sum;
  sum.add(example());
  sum.add(example());
  EXPECT_EQ(sum.images, (Counts{4, 2}));
  EXPECT_EQ(sum.largest, (Counts{2, 0, 0, 2}));
  EXPECT_EQ(*sum.dropped_irrelevant_share(0, 0), 0.75);
  PatchRoutingReport other = example();
  other.layer = "other";
  EXPECT_THROW(sum.add(other), Error);
}

// Unknown labels and cells, assignments dropped by capacity, and the class token.
TEST(PatchRoutingReport, WhatDoesNotCount) {
  Routing routing = expert_choices();
  const at::Tensor cell = at::tensor(Counts{1, -1, 2}, at::kLong);
  PatchRoutingReport report = patch_routing_report(routing, at::tensor(Counts{0, 1, -1}, at::kLong),
                                                   patches_of_cells(cell, {2, 2}, routing.layout), 2);
  EXPECT_EQ(report.images, (Counts{1, 0}));
  EXPECT_FALSE(report.reached_share(1, 0).has_value());
  EXPECT_EQ(to_json(report)["classes"][1]["kept"], Json());

  routing.kept = to_tensor<int64_t>({0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, at::kLong).to(at::kBool);
  report = patch_routing_report(routing, at::tensor(Counts{0, 1, -1}, at::kLong),
                                patches_of_cells(cell, {2, 2}, routing.layout), 2);
  EXPECT_EQ(report.reached, (Counts{0, 1, 0, 0}));

  routing.layout = {1, 12, 3, 3, 3};  // tokens 3.. are patches 0..
  report = patch_routing_report(routing, at::tensor(Counts{0}, at::kLong),
                                patches_of_cells(at::tensor(Counts{0}, at::kLong), {3, 3}, routing.layout), 1);
  EXPECT_EQ(report.reached, (Counts{0, 1}));  // token 3
  EXPECT_EQ(report.taken, (Counts{4, 5}));    // without tokens 0 and 1
}

TEST(PatchRoutingReport, CellsOnGridsOfOtherSizes) {
  const auto patches = [](int64_t cell, const TokenLayout& layout) {
    const at::Tensor found = patches_of_cells(at::tensor(Counts{cell}, at::kLong), {2, 2}, layout);
    Counts which;
    for (int64_t j = 0; j < found.numel(); ++j)
      if (found.const_data_ptr<bool>()[j]) which.push_back(j);
    return which;
  };
  EXPECT_EQ(patches(1, {1, 16, 0, 4, 4}), (Counts{2, 3, 6, 7}));
  EXPECT_EQ(patches(2, {1, 2, 0, 1, 2}), (Counts{0}));  // one row of patches
  EXPECT_EQ(patches(3, {1, 1, 0, 1, 1}), (Counts{0}));
  EXPECT_EQ(patches(4, {1, 4, 0, 2, 2}), Counts());
}

}  // namespace
}  // namespace sparsight::patch_routing_report_test
