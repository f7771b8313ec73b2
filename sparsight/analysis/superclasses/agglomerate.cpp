#include "sparsight/analysis/superclasses/agglomerate.h"

#include <limits>
#include <numeric>

#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// The costs of all pairs of clusters, and for each cluster a the cheapest b > a.
class MergeCosts {
 public:
  MergeCosts(int64_t items, const MergeCost& cost)
      : items_(items), cost_(cost), costs_(static_cast<size_t>(items * items)), best_(static_cast<size_t>(items)) {
    is_left_.assign(static_cast<size_t>(items), true);
    for (int64_t a = 0; a < items; ++a) {
      for (int64_t b = a + 1; b < items; ++b) at(a, b) = cost_(a, b);
      find_best(a);
    }
  }

  // The cheapest pair, which must exist.
  std::pair<int64_t, int64_t> cheapest() {
    int64_t found = -1;
    for (int64_t a = 0; a < items_; ++a)
      if (is_left_[a] && best_[a] >= 0 && (found < 0 || at(a, best_[a]) < at(found, best_[found]))) found = a;
    SPARSIGHT_CHECK(found >= 0);
    return {found, best_[found]};
  }

  // After the merge of `gone` into `kept`.
  void update(int64_t kept, int64_t gone) {
    is_left_[gone] = false;
    for (int64_t other = 0; other < items_; ++other) {
      if (!is_left_[other] || other == kept) continue;
      const int64_t a = std::min(other, kept), b = std::max(other, kept);
      at(a, b) = cost_(a, b);
    }
    for (int64_t a = 0; a < gone; ++a) {
      if (!is_left_[a]) continue;
      if (a == kept || best_[a] == kept || best_[a] == gone) find_best(a);
      if (a < kept && best_[a] != kept && is_before(a, kept)) best_[a] = kept;
    }
  }

 private:
  double& at(int64_t a, int64_t b) { return costs_[static_cast<size_t>(a * items_ + b)]; }
  bool is_before(int64_t a, int64_t b) {
    return best_[a] < 0 || at(a, b) < at(a, best_[a]) || (at(a, b) == at(a, best_[a]) && b < best_[a]);
  }
  void find_best(int64_t a) {
    best_[a] = -1;
    for (int64_t b = a + 1; b < items_; ++b)
      if (is_left_[b] && (best_[a] < 0 || at(a, b) < at(a, best_[a]))) best_[a] = b;
  }

  int64_t items_;
  const MergeCost& cost_;
  std::vector<double> costs_;
  std::vector<int64_t> best_;
  std::vector<bool> is_left_;
};

// Sums of A between clusters, kept up to date through merges.
class AffinitySums {
 public:
  explicit AffinitySums(const at::Tensor& affinity)
      : n_(affinity.size(0)),
        sums_(affinity.const_data_ptr<double>(), affinity.const_data_ptr<double>() + n_ * n_),
        of_row_(static_cast<size_t>(n_)),
        sizes_(static_cast<size_t>(n_), 1) {
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = 0; j < n_; ++j) of_row_[i] += sums_[i * n_ + j];
  }

  double between(int64_t a, int64_t b) const { return sums_[a * n_ + b]; }
  double of_row(int64_t a) const { return of_row_[a]; }
  double size(int64_t a) const { return sizes_[a]; }
  void merge(int64_t kept, int64_t gone) {
    for (int64_t j = 0; j < n_; ++j) sums_[kept * n_ + j] += sums_[gone * n_ + j];
    for (int64_t i = 0; i < n_; ++i) sums_[i * n_ + kept] = sums_[kept * n_ + i];
    of_row_[kept] += of_row_[gone];
    sizes_[kept] += sizes_[gone];
  }

 private:
  int64_t n_;
  std::vector<double> sums_, of_row_, sizes_;
};

}  // namespace

std::vector<int64_t> agglomerate(int64_t items, int64_t clusters, const MergeCost& cost, const MergeClusters& merge) {
  SPARSIGHT_CHECK(clusters >= 1 && clusters <= items);
  std::vector<int64_t> item_to_cluster(static_cast<size_t>(items));
  std::iota(item_to_cluster.begin(), item_to_cluster.end(), 0);
  if (clusters == items) return item_to_cluster;
  MergeCosts costs(items, cost);
  for (int64_t left = items; left > clusters; --left) {
    const auto [kept, gone] = costs.cheapest();
    merge(kept, gone);
    for (int64_t& cluster : item_to_cluster)
      if (cluster == gone) cluster = kept;
    costs.update(kept, gone);
  }
  return renumbered(item_to_cluster);
}

std::vector<int64_t> ward(const at::Tensor& points, int64_t clusters) {
  const int64_t n = points.size(0), axes = points.size(1);
  const at::Tensor copy = points.contiguous();
  std::vector<double> means(copy.const_data_ptr<double>(), copy.const_data_ptr<double>() + n * axes);
  std::vector<double> sizes(static_cast<size_t>(n), 1);
  const auto cost = [&](int64_t a, int64_t b) {
    double square = 0;
    for (int64_t e = 0; e < axes; ++e) {
      const double difference = means[a * axes + e] - means[b * axes + e];
      square += difference * difference;
    }
    return sizes[a] * sizes[b] / (sizes[a] + sizes[b]) * square;
  };
  const auto merge = [&](int64_t kept, int64_t gone) {
    const double size = sizes[kept] + sizes[gone];
    for (int64_t e = 0; e < axes; ++e)
      means[kept * axes + e] = (sizes[kept] * means[kept * axes + e] + sizes[gone] * means[gone * axes + e]) / size;
    sizes[kept] = size;
  };
  return agglomerate(n, clusters, cost, merge);
}

std::vector<int64_t> greedy_modularity(const at::Tensor& affinity, int64_t clusters) {
  AffinitySums sums(affinity);
  const double total = volume(affinity);
  const auto loss = [&](int64_t a, int64_t b) {
    return -2 * (sums.between(a, b) / total - sums.of_row(a) / total * (sums.of_row(b) / total));
  };
  return agglomerate(affinity.size(0), clusters, loss, [&](int64_t kept, int64_t gone) { sums.merge(kept, gone); });
}

std::vector<int64_t> average_linkage(const at::Tensor& affinity, int64_t clusters) {
  AffinitySums sums(affinity);
  const auto distance = [&](int64_t a, int64_t b) { return -sums.between(a, b) / (sums.size(a) * sums.size(b)); };
  return agglomerate(affinity.size(0), clusters, distance, [&](int64_t kept, int64_t gone) { sums.merge(kept, gone); });
}

}  // namespace sparsight
