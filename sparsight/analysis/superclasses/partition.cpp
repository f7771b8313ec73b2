#include "sparsight/analysis/superclasses/partition.h"

#include <algorithm>
#include <map>

#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr size_t kLargestConfusions = 3;

struct ClusterSums {
  double inside = 0, total = 0;  // of the affinity of its classes
};

std::vector<ClusterSums> cluster_sums(const at::Tensor& affinity, const std::vector<int64_t>& item_to_cluster) {
  const int64_t n = affinity.size(0);
  SPARSIGHT_CHECK(std::ssize(item_to_cluster) == n);
  std::vector<ClusterSums> sums(static_cast<size_t>(superclass_count(item_to_cluster)));
  const double* a = affinity.const_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j, ++a) {
      ClusterSums& sum = sums[item_to_cluster[i]];
      sum.total += *a;
      if (item_to_cluster[i] == item_to_cluster[j]) sum.inside += *a;
    }
  return sums;
}

double pair_count(double count) { return count * (count - 1) / 2; }

std::vector<ClassConfusion> largest_within(const double* counts, int64_t n, const std::vector<int64_t>& classes) {
  std::vector<ClassConfusion> found;
  for (const int64_t i : classes)
    for (const int64_t j : classes)
      if (i != j && counts[i * n + j] > 0) found.push_back({i, j, counts[i * n + j]});
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.count > b.count; });
  if (found.size() > kLargestConfusions) found.resize(kLargestConfusions);
  return found;
}

}  // namespace

std::vector<int64_t> renumbered(const std::vector<int64_t>& item_to_cluster) {
  std::map<int64_t, int64_t> number;
  std::vector<int64_t> out;
  for (const int64_t cluster : item_to_cluster)
    out.push_back(number.try_emplace(cluster, static_cast<int64_t>(number.size())).first->second);
  return out;
}

std::vector<std::vector<int64_t>> cluster_members(const std::vector<int64_t>& item_to_cluster) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(superclass_count(item_to_cluster)));
  for (size_t i = 0; i < item_to_cluster.size(); ++i) members[item_to_cluster[i]].push_back(static_cast<int64_t>(i));
  return members;
}

double modularity(const at::Tensor& affinity, const std::vector<int64_t>& item_to_cluster) {
  const double total = volume(affinity);
  double sum = 0;
  for (const ClusterSums& cluster : cluster_sums(affinity, item_to_cluster))
    sum += cluster.inside / total - cluster.total / total * (cluster.total / total);
  return sum;
}

double normalised_cut(const at::Tensor& affinity, const std::vector<int64_t>& item_to_cluster) {
  double sum = 0;
  for (const ClusterSums& cluster : cluster_sums(affinity, item_to_cluster))
    if (cluster.total > 0) sum += (cluster.total - cluster.inside) / cluster.total;
  return sum;
}

double adjusted_rand_index(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size())
    fail_usage("the maps are of ", a.size(), " and of ", b.size(), " classes; compare maps of the same classes");
  std::map<std::pair<int64_t, int64_t>, double> both;
  std::map<int64_t, double> of_a, of_b;
  for (size_t i = 0; i < a.size(); ++i) ++both[{a[i], b[i]}], ++of_a[a[i]], ++of_b[b[i]];
  double together = 0, in_a = 0, in_b = 0;
  for (const auto& [key, count] : both) together += pair_count(count);
  for (const auto& [key, count] : of_a) in_a += pair_count(count);
  for (const auto& [key, count] : of_b) in_b += pair_count(count);
  const double all = pair_count(static_cast<double>(a.size()));
  const double expected = all > 0 ? in_a * in_b / all : 0, most = (in_a + in_b) / 2;
  return most == expected ? 1 : (together - expected) / (most - expected);  // equal: both have one cluster, or K
}

PartitionMeasures measure_partition(const at::Tensor& counts, const std::vector<int64_t>& item_to_cluster) {
  const at::Tensor affinity = confusion_affinity(counts);
  PartitionMeasures measures;
  measures.modularity = modularity(affinity, item_to_cluster);
  measures.normalised_cut = normalised_cut(affinity, item_to_cluster);
  const at::Tensor values = counts.to(at::kCPU, at::kDouble).contiguous();
  const double* k = values.const_data_ptr<double>();
  const int64_t n = values.size(0);
  double all = 0, all_inside = 0;
  for (std::vector<int64_t>& classes : cluster_members(item_to_cluster)) {
    double confused = 0, inside = 0;
    for (const int64_t i : classes)
      for (int64_t j = 0; j < n; ++j)
        if (i != j) {
          confused += k[i * n + j];
          if (item_to_cluster[i] == item_to_cluster[j]) inside += k[i * n + j];
        }
    all += confused, all_inside += inside;
    ClusterMeasures cluster{{}, std::nullopt, largest_within(k, n, classes)};
    if (confused > 0) cluster.inside_share = inside / confused;
    cluster.classes = std::move(classes);
    measures.clusters.push_back(std::move(cluster));
  }
  measures.inside_share = all_inside / all;  // confusion_affinity() has checked that there are confusions
  return measures;
}

}  // namespace sparsight
