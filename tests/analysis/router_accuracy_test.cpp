#include "sparsight/analysis/router_accuracy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"

namespace sparsight::router_accuracy_test {
namespace {

// Logits of B images of S tokens for three experts, one choice each.
Routing make_routing(const std::vector<float>& logits, int64_t images, const std::string& layer = "router") {
  Routing routing;
  routing.layer = layer;
  routing.experts = 3;
  routing.clean_logits = at::tensor(logits).view({-1, 3});
  routing.tokens = routing.clean_logits.size(0);
  routing.layout = {images, routing.tokens / images, 0, 0, 0};
  return routing;
}

at::Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace

// Specification 4.4: logits (1, 2, 0) give p = (0.244728, 0.665241, 0.090031), whose largest entry is expert 1.
TEST(RouterAccuracy, M17_ProbabilitiesBeforeTopK) {
  const Routing routing = make_routing({1, 2, 0}, 1);
  EXPECT_TRUE(
      at::allclose(router_probabilities(routing, 1), at::tensor({.244728f, .665241f, .090031f}).view({1, 3}), 0, 1e-6));
  EXPECT_TRUE(at::equal(router_choice(routing, 1), longs({1})));
}

// Three images, one decision each: experts 1, 0 and, of a tie of 1 and 2, the lower one. Super-classes 1, 2, 1: two of
// three are found.
TEST(RouterAccuracy, TheShareOfImagesWhoseMostProbableExpertIsTheirSuperClass) {
  const Routing routing = make_routing({1, 2, 0, 5, 1, 1, 0, 3, 3}, 3);
  EXPECT_TRUE(at::equal(router_choice(routing, 3), longs({1, 0, 1})));
  RouterAccuracy accuracy({1, 2, 0});  // of classes 0, 1 and 2
  accuracy.add({routing}, longs({0, 1, 0}));
  ASSERT_EQ(accuracy.layers().size(), 1u);
  EXPECT_EQ(accuracy.layers()[0].hits, 2);
  EXPECT_DOUBLE_EQ(*accuracy.mean(), 2. / 3);
  accuracy.add({routing}, longs({0, 2, 0}));  // all three
  EXPECT_DOUBLE_EQ(*accuracy.mean(), 5. / 6);
}

// The first image's tokens have p = (.665241, .244728, .090031) and (.090031, .244728, .665241); of the second's, one
// is certain of expert 1 and the other leans towards 0: (.0177 + .5761) / 2 against (.9647 + .2119) / 2.
TEST(RouterAccuracy, ProbabilitiesOfTokensAreAveraged) {
  const Routing routing = make_routing({2, 1, 0, 0, 1, 2, 0, 4, 0, 1, 0, 0}, 2);
  const at::Tensor probabilities = router_probabilities(routing, 2);
  EXPECT_TRUE(at::allclose(probabilities[0], at::tensor({.377636f, .244728f, .377636f}), 0, 1e-6));
  EXPECT_EQ(router_choice(routing, 2)[1].item<int64_t>(), 1);
}

// Padding does not count: without its second token the first image's expert is 0, with it 2.
TEST(RouterAccuracy, PaddingDoesNotCount) {
  Routing routing = make_routing({2, 1, 0, 0, 1, 9}, 1);
  EXPECT_TRUE(at::equal(router_choice(routing, 1), longs({2})));
  routing.valid = longs({1, 0}).to(at::kBool);
  EXPECT_TRUE(at::equal(router_choice(routing, 1), longs({0})));
  EXPECT_TRUE(at::allclose(router_probabilities(routing, 1).sum(1), at::tensor({1.f})));
}

// The accuracies of the two routers are 1 and 1/2.
TEST(RouterAccuracy, SeveralRoutersAreCountedOneByOne) {
  RouterAccuracy accuracy({0, 1, 2});
  accuracy.add(
      {make_routing({9, 0, 0, 0, 9, 0}, 2, "blocks.4.mlp"), make_routing({9, 0, 0, 9, 0, 0}, 2, "blocks.5.mlp")},
      longs({0, 1}));
  ASSERT_EQ(accuracy.layers().size(), 2u);
  EXPECT_EQ(accuracy.layers()[0].layer, "blocks.4.mlp");
  EXPECT_EQ(accuracy.layers()[0].accuracy(), 1);
  EXPECT_EQ(accuracy.layers()[1].accuracy(), .5);
  EXPECT_EQ(accuracy.mean(), .75);
}

TEST(RouterAccuracy, RoutersWithoutLogitsOrWithOtherExpertsAreNotMeasured) {
  Routing without = make_routing({1, 2, 0}, 1);
  without.clean_logits = at::Tensor();
  EXPECT_FALSE(router_choice(without, 1).defined());
  Routing fewer = make_routing({1, 2, 0}, 1);
  fewer.experts = 2;
  RouterAccuracy accuracy({0, 1, 2});
  accuracy.add({without, fewer}, longs({0}));
  EXPECT_FALSE(accuracy.mean().has_value());
  RouterAccuracy unguided({});
  unguided.add({make_routing({1, 2, 0}, 1)}, longs({0}));
  EXPECT_FALSE(unguided.mean().has_value());
  EXPECT_THROW(router_choice(make_routing({1, 2, 0}, 1), 2), Error);
}

}  // namespace sparsight::router_accuracy_test
