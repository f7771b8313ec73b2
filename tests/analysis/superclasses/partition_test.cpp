#include "sparsight/analysis/superclasses/partition.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "sparsight/analysis/superclasses/agglomerate.h"
#include "sparsight/analysis/superclasses/farthest_first_kmeans.h"
#include "tests/support/errors.h"

namespace sparsight::partition_test {
namespace {

using Map = std::vector<int64_t>;

at::Tensor table(const std::vector<double>& values, int64_t columns) {
  return at::tensor(values, at::kDouble).view({-1, columns});
}

TEST(Partition, IsNumberedByItsSmallestItems) { EXPECT_EQ(renumbered({7, 2, 7, 0, 2}), (Map{0, 1, 0, 2, 1})); }

// Edges 0-1 and 2-3 of 1 and 1-2 of 0.5: the volume is 5; each pair has 2/5 inside and 2.5/5 in all, so the modularity
// is 2 (0.4 - 0.25) and the cut 2 * 0.5 / 2.5.
TEST(Partition, ModularityAndCutByHand) {
  const at::Tensor affinity = table({0, 1, 0, 0, 1, 0, 0.5, 0, 0, 0.5, 0, 1, 0, 0, 1, 0}, 4);
  EXPECT_NEAR(modularity(affinity, {0, 0, 1, 1}), 0.3, 1e-12);
  EXPECT_NEAR(normalised_cut(affinity, {0, 0, 1, 1}), 0.4, 1e-12);
  EXPECT_NEAR(modularity(affinity, {0, 0, 0, 0}), 0, 1e-12);
  EXPECT_EQ(greedy_modularity(affinity, 2), (Map{0, 0, 1, 1}));
  EXPECT_EQ(average_linkage(affinity, 2), (Map{0, 0, 1, 1}));
}

// Classes 0 and 1 have 3 + 2 confusions with each other and 1 with class 2, which has 4 with class 0.
TEST(Partition, M46_SharesAndLargestConfusionsByHand) {
  const PartitionMeasures measures = measure_partition(table({5, 3, 1, 2, 8, 0, 4, 0, 6}, 3), {0, 0, 1});
  EXPECT_NEAR(measures.inside_share, 0.5, 1e-12);
  ASSERT_EQ(measures.clusters.size(), 2u);
  EXPECT_NEAR(measures.clusters[0].inside_share.value(), 5.0 / 6, 1e-12);
  EXPECT_NEAR(measures.clusters[1].inside_share.value(), 0, 1e-12);
  EXPECT_EQ(measures.clusters[0].classes, (Map{0, 1}));
  ASSERT_EQ(measures.clusters[0].largest.size(), 2u);
  EXPECT_EQ(measures.clusters[0].largest[0].truth, 0);
  EXPECT_EQ(measures.clusters[0].largest[0].predicted, 1);
  EXPECT_EQ(measures.clusters[0].largest[0].count, 3);
  EXPECT_TRUE(measures.clusters[1].largest.empty());
}

// Pairs together in both: 1; in a: 2; in b: 1; of 6. Expected 1/3, at most 1.5: (1 - 1/3) / (1.5 - 1/3) = 4/7, which
// scikit-learn's documentation gives as 0.57.
TEST(Partition, AdjustedRandIndexByHand) {
  EXPECT_NEAR(adjusted_rand_index({0, 0, 1, 1}, {0, 0, 1, 2}), 4.0 / 7, 1e-12);
  EXPECT_NEAR(adjusted_rand_index({0, 0, 1, 1}, {1, 1, 0, 0}), 1, 1e-12);
  EXPECT_NEAR(adjusted_rand_index({0, 0, 1, 1}, {0, 1, 0, 1}), -0.5, 1e-12);
  EXPECT_EQ(adjusted_rand_index({0, 0, 0}, {0, 0, 0}), 1);
  EXPECT_EQ(adjusted_rand_index({0, 1, 2}, {0, 1, 2}), 1);
  EXPECT_NE(testing::error_text<UsageError>([] { adjusted_rand_index({0}, {0, 0}); }), "");
}

// Costs of neighbours on a line: |difference|^2 / 2. 0 and 1 cost 0.5 before 1 and 2 with the same cost; then their
// mean 0.5 and 2 cost 2/3 * 2.25 = 1.5, less than 10 and 12 with 2.
TEST(Agglomerate, WardByHand) {
  const at::Tensor points = table({0, 1, 2, 10, 12}, 1);
  EXPECT_EQ(ward(points, 4), (Map{0, 0, 1, 2, 3}));
  EXPECT_EQ(ward(points, 3), (Map{0, 0, 0, 1, 2}));
  EXPECT_EQ(ward(points, 2), (Map{0, 0, 0, 1, 1}));
}

// The sum over pairs of all items, without any bookkeeping, must merge the same.
TEST(Agglomerate, WardEqualsAPlainScan) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back((i * i * 37 % 101) / 10.0), values.push_back((i * 53 % 29) / 3.0);
  const at::Tensor points = table(values, 2);
  Map item_to_cluster(40);
  for (int64_t i = 0; i < 40; ++i) item_to_cluster[i] = i;
  for (int64_t left = 40; left > 1; --left) {
    EXPECT_EQ(ward(points, left), renumbered(item_to_cluster)) << left;
    const auto cluster_mean = [&](int64_t c) {
      std::array<double, 3> sum{};
      for (int64_t i = 0; i < 40; ++i)
        if (item_to_cluster[i] == c) sum[0] += values[2 * i], sum[1] += values[2 * i + 1], ++sum[2];
      return sum;
    };
    double best = -1;
    std::pair<int64_t, int64_t> pair;
    for (int64_t a = 0; a < 40; ++a)
      for (int64_t b = a + 1; b < 40; ++b) {
        const auto x = cluster_mean(a), y = cluster_mean(b);
        if (x[2] == 0 || y[2] == 0) continue;
        const double u = x[0] / x[2] - y[0] / y[2], v = x[1] / x[2] - y[1] / y[2];
        const double cost = x[2] * y[2] / (x[2] + y[2]) * (u * u + v * v);
        if (best < 0 || cost < best - 1e-12) best = cost, pair = {a, b};
      }
    for (int64_t& cluster : item_to_cluster)
      if (cluster == pair.second) cluster = pair.first;
  }
}

// Seeds 0 and 10 (the farthest from 0); then 8 joins 10. With three clusters the farthest from both is 4.
TEST(FarthestFirstKmeans, ByHand) {
  const at::Tensor points = table({0, 1, 4, 8, 10}, 1);
  EXPECT_EQ(farthest_first_kmeans(points, 2, 0), (Map{0, 0, 0, 1, 1}));
  EXPECT_EQ(farthest_first_kmeans(points, 3, 0), (Map{0, 0, 1, 2, 2}));
}

TEST(FarthestFirstKmeans, EqualPointsStillFillEveryCluster) {
  for (int64_t clusters = 1; clusters <= 4; ++clusters)
    EXPECT_EQ(cluster_members(farthest_first_kmeans(table({2, 2, 2, 2}, 1), clusters, 0)).size(),
              static_cast<size_t>(clusters));
}

}  // namespace
}  // namespace sparsight::partition_test
