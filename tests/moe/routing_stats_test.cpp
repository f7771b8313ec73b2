#include "sparsight/moe/routing_stats.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/vmoe_example.h"

namespace sparsight {

TEST(RoutingStats, OfTheWorkedExample) {
  const RoutingStats s =
      routing_stats(route_softmax_topk(test::example_logits(), test::example_epsilon(), 0.25, 2, false));
  EXPECT_EQ(s.count, (std::vector<double>{1, 2, 2, 1}));
  // Gates by expert: 0: .505696; 1: .184200 + .451452; 2: .728524 + .224184; 3: .284558
  const std::vector<double> importance{0.505696, 0.635652, 0.952708, 0.284558};
  for (size_t e = 0; e < 4; ++e) EXPECT_NEAR(s.importance[e], importance[e], 2e-6);
  // mean .5946535; squared differences .0079134 .0016809 .1282030 .0961592 -> variance .0584891, cv .406701
  EXPECT_NEAR(s.cv_importance, 0.406701, 1e-5);
  EXPECT_NEAR(s.cv_load, std::sqrt(0.123314), 1e-5);
  EXPECT_NEAR(s.max_over_mean_load, 0.473901 * 4 / (0.322910 + 0.448082 + 0.473901 + 0.162036), 1e-5);
  EXPECT_NEAR(s.max_over_mean_count, 2 / 1.5, 1e-12);
  EXPECT_EQ(s.dropped, 0);
  EXPECT_NEAR(s.mean_top_gate, (0.505696 + 0.728524 + 0.451452) / 3, 1e-6);
}

TEST(RoutingStats, WithoutNoiseTheLoadIsTheCount) {
  const RoutingStats s = routing_stats(route_softmax_topk(test::example_logits(), {}, 0, 2, false));
  EXPECT_EQ(s.smooth_load, s.count);
}

TEST(RoutingStats, DroppedIsTheShareOfChosenAssignmentsNotInTheOrder) {
  Routing routing = route_softmax_topk(test::example_logits(), {}, 0, 2, false);
  routing.order = routing.order.slice(0, 0, 4);  // 2 of 6 dropped
  EXPECT_NEAR(routing_stats(routing).dropped, 2.0 / 6, 1e-12);
}

TEST(RoutingStats, OfAnEmptyPoolAreZeros) {
  const RoutingStats s = routing_stats(route_softmax_topk(torch::empty({0, 3}), {}, 0, 2, false));
  EXPECT_EQ(s.count, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(s.cv_importance, 0);
  EXPECT_EQ(s.max_over_mean_count, 0);
  EXPECT_EQ(s.mean_top_gate, 0);
}

}  // namespace sparsight
