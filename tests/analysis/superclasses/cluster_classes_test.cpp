#include "sparsight/analysis/superclasses/cluster_classes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/eye.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/analysis/superclasses/clustering_methods.h"
#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/core/shuffle.h"
#include "tests/analysis/superclasses/confusion_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/thread_count.h"

namespace sparsight::cluster_classes_test {
namespace {

using Map = std::vector<int64_t>;
using testing::cifar10_confusions;
using testing::error_text;
using testing::planted_confusions;
using testing::unordered_plan;

ClusterOptions into(int64_t superclasses, const std::string& method = "spectral_ward") {
  return {.superclasses = superclasses, .method = method};
}

Map clusters(const at::Tensor& counts, int64_t superclasses, const std::string& method = "spectral_ward") {
  return cluster_classes(counts, into(superclasses, method)).class_to_superclass;
}

bool has_exactly(const Map& map, int64_t superclasses) {
  const auto members = cluster_members(map);
  return std::ssize(members) == superclasses &&
         std::ranges::none_of(members, [](const Map& classes) { return classes.empty(); });
}

TEST(ClusterClasses, M23_GoldenAffinity) {
  const at::Tensor affinity = confusion_affinity(cifar10_confusions());
  const auto at = [&](int64_t i, int64_t j) { return affinity[i][j].item<double>(); };
  EXPECT_NEAR(at(0, 8), 0.123, 1e-12);
  EXPECT_NEAR(at(1, 9), 0.162, 1e-12);
  EXPECT_NEAR(at(3, 5), 0.176, 1e-12);
  EXPECT_EQ(at(4, 4), 0);
  EXPECT_NEAR(volume(affinity), 5.242, 1e-12);
}

TEST(ClusterClasses, M23_GoldenEigenvalues) {
  const ClassClusters found = cluster_classes(cifar10_confusions(), into(3));
  const double expected[] = {1, 0.337816, 0.101552, 0.009258};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_NEAR(found.eigenvalues.at(i), expected[i], 1e-6);
  EXPECT_NEAR(found.eigengap.value(), 0.101552 - 0.009258, 2e-6);
}

TEST(ClusterClasses, M23_GoldenLabelsAndMeasures) {
  const at::Tensor counts = cifar10_confusions(), affinity = confusion_affinity(counts);
  EXPECT_EQ(clusters(counts, 2), (Map{0, 0, 1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(clusters(counts, 3), (Map{0, 0, 1, 2, 1, 2, 1, 2, 0, 0}));
  EXPECT_EQ(clusters(counts, 4), (Map{0, 1, 2, 3, 2, 3, 2, 3, 0, 1}));
  EXPECT_EQ(clusters(counts, 5), (Map{0, 1, 2, 3, 2, 3, 2, 4, 0, 1}));
  EXPECT_NEAR(modularity(affinity, clusters(counts, 2)), 0.15991, 5e-6);
  EXPECT_NEAR(normalised_cut(affinity, clusters(counts, 2)), 0.65121, 5e-6);
  EXPECT_NEAR(modularity(affinity, clusters(counts, 4)), 0.10037, 5e-6);
}

TEST(ClusterClasses, M23_TauHardlyMatters) {
  for (int64_t e = 2; e <= 5; ++e)
    for (const double tau : {0.01, 0.25}) {
      ClusterOptions options = into(e);
      options.tau = tau;
      EXPECT_EQ(cluster_classes(cifar10_confusions(), options).class_to_superclass, clusters(cifar10_confusions(), e));
    }
}

// What the alternatives do on the same matrix, as said of them where the default was chosen.
TEST(ClusterClasses, GreedyModularityLeavesABlockAndSingletons) {
  const auto members = cluster_members(clusters(cifar10_confusions(), 5, "greedy_modularity"));
  EXPECT_GE(std::ranges::max(members, {}, &Map::size).size(), 4u);
  EXPECT_TRUE(std::ranges::any_of(members, [](const Map& classes) { return classes.size() == 1; }));
}

TEST(ClusterClasses, M24_PermutingClassesPermutesTheGroups) {
  for (const at::Tensor& counts :
       {cifar10_confusions(), planted_confusions(unordered_plan({8, 8, 8, 8, 8}, 1), 0.8, 2)})
    for (const ClusteringMethod& method : clustering_methods())
      for (int64_t e = 2; e <= 5; ++e) {
        Map order(static_cast<size_t>(counts.size(0)));
        std::iota(order.begin(), order.end(), 0);
        RandomStream random(static_cast<uint64_t>(e), "test");
        shuffle(order, random);
        const at::Tensor index = at::tensor(order, at::kLong);
        const Map plain = clusters(counts, e, method.name);
        Map expected;
        for (const int64_t i : order) expected.push_back(plain[i]);
        EXPECT_EQ(clusters(counts.index_select(0, index).index_select(1, index), e, method.name), renumbered(expected))
            << method.name << ", " << e;
      }
}

TEST(ClusterClasses, M24_SameOnEveryThreadCount) {
  const at::Tensor counts = planted_confusions(unordered_plan(Map(10, 30), 1), 0.3, 2);  // blurred: many near ties
  const test::ThreadCount one(1);
  const ClassClusters expected = cluster_classes(counts, into(10));
  for (const int threads : {1, 2, 4}) {
    const test::ThreadCount some(threads);
    const ClassClusters found = cluster_classes(counts, into(10));
    EXPECT_EQ(found.class_to_superclass, expected.class_to_superclass) << threads;
    EXPECT_EQ(found.eigenvalues, expected.eigenvalues) << threads;
  }
}

TEST(ClusterClasses, M25_ExactlyAsManyAsAsked) {
  at::Tensor isolated = cifar10_confusions().clone();  // classes 2 and 7 are never confused
  for (const int64_t k : {2, 7}) {
    isolated.select(0, k).zero_();
    isolated.select(1, k).zero_();
  }
  at::Tensor one_pair = at::eye(6, at::kLong);  // all but two are
  one_pair[4][1] = 3;
  for (const at::Tensor& counts : {cifar10_confusions(), isolated, one_pair})
    for (const ClusteringMethod& method : clustering_methods())
      for (int64_t e = 1; e <= counts.size(0); ++e)
        EXPECT_TRUE(has_exactly(clusters(counts, e, method.name), e)) << method.name << ", " << e;
  EXPECT_EQ(clusters(cifar10_confusions(), 1), Map(10, 0));
  EXPECT_EQ(clusters(cifar10_confusions(), 10), (Map{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(ClusterClasses, M25_NoConfusionIsAnError) {
  for (const ClusteringMethod& method : clustering_methods())
    EXPECT_NE(error_text([&] { clusters(at::eye(5).mul(40), 2, method.name); }).find("no class is taken for another"),
              std::string::npos);
}

TEST(ClusterClasses, M26_FindsPlantedSuperclasses) {
  for (const Map& sizes : {Map(10, 10), Map{15, 5, 15, 5, 15, 5, 15, 5, 15, 5}})
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const Map plan = unordered_plan(sizes, seed);
      const at::Tensor counts = planted_confusions(plan, 0.8, seed);
      for (const char* method : {"spectral_ward", "spectral_kmeans"})
        EXPECT_GE(adjusted_rand_index(clusters(counts, 10, method), plan), 0.95) << method << ", seed " << seed;
    }
}

TEST(ClusterClasses, M26_FindsThemAmongAThousandClasses) {
  const Map plan = unordered_plan(Map(10, 100), 5);
  EXPECT_GE(adjusted_rand_index(clusters(planted_confusions(plan, 0.8, 6), 10), plan), 0.95);
}

// Four groups of 5 of which 0 and 1, and 2 and 3, are confused with each other.
TEST(ClusterClasses, M27_FewerSuperclassesThanGroupsMergeGroups) {
  Map groups, pairs;
  for (int64_t i = 0; i < 20; ++i) groups.push_back(i % 4), pairs.push_back(i % 4 / 2);
  const at::Tensor counts = planted_confusions(pairs, 0.8, 1);
  ClusterOptions options = into(2);
  options.class_to_group = groups;
  EXPECT_EQ(cluster_classes(counts, options).class_to_superclass, pairs);
  options.superclasses = 3;
  const Map three = cluster_classes(counts, options).class_to_superclass;
  EXPECT_TRUE(has_exactly(three, 3));
  for (int64_t i = 4; i < 20; ++i) EXPECT_EQ(three[i], three[i % 4]) << "groups stay together";
}

TEST(ClusterClasses, M27_MoreSuperclassesThanGroupsSplitTheLargest) {
  const Map fine = unordered_plan({4, 4, 4, 3, 3}, 2);  // 0 and 1 are one group of 8, 2 of 4, 3 and 4 of 6
  Map groups;
  for (const int64_t entry : fine) groups.push_back(entry < 2 ? 0 : entry < 3 ? 1 : 2);
  ClusterOptions options = into(5);
  options.class_to_group = groups;
  const at::Tensor counts = planted_confusions(fine, 0.9, 3);
  EXPECT_EQ(cluster_classes(counts, options).class_to_superclass, renumbered(fine));
  options.superclasses = 3;
  EXPECT_EQ(cluster_classes(counts, options).class_to_superclass, renumbered(groups));
  for (options.superclasses = 1; options.superclasses <= 18; ++options.superclasses)
    EXPECT_TRUE(has_exactly(cluster_classes(counts, options).class_to_superclass, options.superclasses));
  options.superclasses = 2;
  options.class_to_group = Map(17, 0);
  EXPECT_NE(error_text<UsageError>([&] { cluster_classes(counts, options); }).find("is of 17 classes"),
            std::string::npos);
}

TEST(ClusterClasses, TheMinimumSizeIsKept) {
  ClusterOptions options = into(4, "greedy_modularity");
  const auto smallest = [&] {
    return std::ranges::min(cluster_members(cluster_classes(cifar10_confusions(), options).class_to_superclass), {},
                            &Map::size)
        .size();
  };
  EXPECT_EQ(smallest(), 1u);
  options.min_cluster_size = 2;
  EXPECT_GE(smallest(), 2u);
  options.min_cluster_size = 3;
  EXPECT_NE(error_text<UsageError>(smallest).find("choose 1 to 2"), std::string::npos);
}

TEST(ClusterClasses, RefusesWhatDoesNotFit) {
  const at::Tensor counts = cifar10_confusions();
  for (const int64_t e : {0, 11, -1})
    EXPECT_EQ(error_text<UsageError>([&] { clusters(counts, e); }),
              cat(e, " super-classes of 10 classes; choose 1 to 10"));
  EXPECT_NE(error_text<UsageError>([&] { clusters(counts, 2, "spectral_wart"); }).find("spectral_ward"),
            std::string::npos);
  ClusterOptions options = into(2);
  options.tau = 0;
  EXPECT_NE(error_text<UsageError>([&] { cluster_classes(counts, options); }), "");
  EXPECT_NE(error_text([&] { check_confusion(at::ones({3, 4}), "x.npy"); }).find("x.npy: "), std::string::npos);
  EXPECT_NE(error_text([&] { check_confusion(at::ones({1, 1}), "x.npy"); }).find("2 to 5000"), std::string::npos);
  for (const double bad : {double{NAN}, double{INFINITY}, -1.0}) {
    at::Tensor damaged = at::ones({3, 3});
    damaged[1][2] = bad;
    EXPECT_NE(error_text([&] { check_confusion(damaged, "x.npy"); }).find("row 1, column 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace sparsight::cluster_classes_test
