#include "sparsight/analysis/superclasses/farthest_first_kmeans.h"

#include <limits>

#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr int kMaxLloydRounds = 300;

class Lloyd {
 public:
  Lloyd(const at::Tensor& points, int64_t clusters)
      : n_(points.size(0)),
        axes_(points.size(1)),
        clusters_(clusters),
        points_(points.contiguous()),
        means_(static_cast<size_t>(clusters * axes_)),
        item_to_cluster_(static_cast<size_t>(n_), -1) {}

  void seed(int64_t first) {
    std::vector<double> nearest(static_cast<size_t>(n_), std::numeric_limits<double>::infinity());
    for (int64_t c = 0; c < clusters_; ++c) {
      int64_t chosen = first;
      if (c > 0) {
        chosen = 0;
        for (int64_t i = 1; i < n_; ++i)
          if (nearest[i] > nearest[chosen]) chosen = i;
      }
      std::copy(point(chosen), point(chosen) + axes_, mean(c));
      for (int64_t i = 0; i < n_; ++i) nearest[i] = std::min(nearest[i], distance(i, c));
    }
  }

  // False if no point changes its cluster.
  bool round() {
    std::vector<int64_t> assigned;
    for (int64_t i = 0; i < n_; ++i) assigned.push_back(nearest_mean(i));
    fill_empty(assigned);
    if (assigned == item_to_cluster_) return false;
    item_to_cluster_ = std::move(assigned);
    update_means();
    return true;
  }

  const std::vector<int64_t>& item_to_cluster() const { return item_to_cluster_; }

 private:
  const double* point(int64_t i) const { return points_.const_data_ptr<double>() + i * axes_; }
  double* mean(int64_t c) { return means_.data() + c * axes_; }
  double distance(int64_t i, int64_t c) {
    double square = 0;
    for (int64_t e = 0; e < axes_; ++e) square += (point(i)[e] - mean(c)[e]) * (point(i)[e] - mean(c)[e]);
    return square;
  }
  int64_t nearest_mean(int64_t i) {
    int64_t best = 0;
    for (int64_t c = 1; c < clusters_; ++c)
      if (distance(i, c) < distance(i, best)) best = c;
    return best;
  }

  void fill_empty(std::vector<int64_t>& assigned) {
    std::vector<int64_t> sizes(static_cast<size_t>(clusters_));
    for (const int64_t cluster : assigned) ++sizes[cluster];
    for (int64_t c = 0; c < clusters_; ++c) {
      if (sizes[c] > 0) continue;
      int64_t farthest = -1;
      for (int64_t i = 0; i < n_; ++i)
        if (sizes[assigned[i]] > 1 &&
            (farthest < 0 || distance(i, assigned[i]) > distance(farthest, assigned[farthest])))
          farthest = i;
      SPARSIGHT_CHECK(farthest >= 0);
      --sizes[assigned[farthest]], ++sizes[c];
      assigned[farthest] = c;
      std::copy(point(farthest), point(farthest) + axes_, mean(c));
    }
  }

  void update_means() {
    std::vector<double> sizes(static_cast<size_t>(clusters_));
    std::fill(means_.begin(), means_.end(), 0);
    for (int64_t i = 0; i < n_; ++i) {
      ++sizes[item_to_cluster_[i]];
      for (int64_t e = 0; e < axes_; ++e) mean(item_to_cluster_[i])[e] += point(i)[e];
    }
    for (int64_t c = 0; c < clusters_; ++c)
      for (int64_t e = 0; e < axes_; ++e) mean(c)[e] /= sizes[c];
  }

  int64_t n_, axes_, clusters_;
  at::Tensor points_;
  std::vector<double> means_;  // [clusters, axes]
  std::vector<int64_t> item_to_cluster_;
};

}  // namespace

std::vector<int64_t> farthest_first_kmeans(const at::Tensor& points, int64_t clusters, int64_t first) {
  SPARSIGHT_CHECK(clusters >= 1 && clusters <= points.size(0) && first < points.size(0));
  Lloyd lloyd(points, clusters);
  lloyd.seed(first);
  for (int round = 0; round < kMaxLloydRounds && lloyd.round(); ++round) {
  }
  return renumbered(lloyd.item_to_cluster());
}

}  // namespace sparsight
