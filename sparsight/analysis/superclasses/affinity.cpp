#include "sparsight/analysis/superclasses/affinity.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// The row sums of a [n,n] float64 matrix, each added from left to right, so that no thread count changes a bit.
std::vector<double> row_sums(const at::Tensor& matrix) {
  const int64_t n = matrix.size(0);
  const double* value = matrix.const_data_ptr<double>();
  std::vector<double> sums(static_cast<size_t>(n));
  for (double& sum : sums)
    for (int64_t j = 0; j < n; ++j) sum += *value++;
  return sums;
}

}  // namespace

void check_confusion(const at::Tensor& counts, const std::string& name) {
  if (counts.dim() != 2 || counts.size(0) != counts.size(1))
    fail(name, ": a confusion matrix is square, a row for each true class and a column for each predicted one; got ",
         counts.dim() == 2 ? cat(counts.size(0), " x ", counts.size(1)) : cat(counts.dim(), " axes"));
  if (counts.size(0) < 2 || counts.size(0) > kMaxClusteredClasses)
    fail(name, ": a confusion matrix of ", counts.size(0), " classes; 2 to ", kMaxClusteredClasses,
         " can be clustered");
  const int64_t classes = counts.size(0);
  const at::Tensor values = counts.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < values.numel(); ++i)
    if (const double value = values.const_data_ptr<double>()[i]; !std::isfinite(value) || value < 0)
      fail(name, ": row ", i / classes, ", column ", i % classes, " is ", value,
           "; confusions are counts, finite numbers from 0");
}

at::Tensor confusion_affinity(const at::Tensor& counts) {
  check_confusion(counts, "the confusion matrix");
  const at::Tensor k = counts.to(at::kCPU, at::kDouble).contiguous();
  const int64_t n = k.size(0);
  const std::vector<double> sums = row_sums(k);
  at::Tensor affinity = at::zeros({n, n}, at::kDouble);
  const double* count = k.const_data_ptr<double>();
  double* a = affinity.mutable_data_ptr<double>();
  const auto share = [&](int64_t i, int64_t j) { return count[i * n + j] / std::max(1.0, sums[i]); };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i != j) a[i * n + j] = (share(std::min(i, j), std::max(i, j)) + share(std::max(i, j), std::min(i, j))) / 2;
  if (volume(affinity) <= 0)
    fail(
        "no class is taken for another in the confusion matrix, so nothing says which are alike; count the "
        "predictions of a weaker model or of more images, or use soft confusions");
  return affinity;
}

double volume(const at::Tensor& affinity) {
  double sum = 0;
  for (const double row : row_sums(affinity)) sum += row;
  return sum;
}

at::Tensor normalised_affinity(const at::Tensor& affinity, double tau) {
  const int64_t n = affinity.size(0);
  const double everywhere = tau * volume(affinity) / static_cast<double>(n * n);
  SPARSIGHT_CHECK(everywhere > 0);
  const std::vector<double> sums = row_sums(affinity);
  std::vector<double> roots;
  for (const double sum : sums) roots.push_back(std::sqrt(sum + everywhere * static_cast<double>(n)));
  at::Tensor normalised = at::empty({n, n}, at::kDouble);
  const double* a = affinity.const_data_ptr<double>();
  double* s = normalised.mutable_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      s[i * n + j] = (a[i * n + j] + everywhere) / (roots[static_cast<size_t>(i)] * roots[static_cast<size_t>(j)]);
  return normalised;
}

at::Tensor group_affinity(const at::Tensor& affinity, const std::vector<int64_t>& class_to_group) {
  const int64_t n = affinity.size(0), groups = superclass_count(class_to_group);
  SPARSIGHT_CHECK(std::ssize(class_to_group) == n);
  std::vector<double> sizes(static_cast<size_t>(groups));
  for (const int64_t group : class_to_group) ++sizes[static_cast<size_t>(group)];
  at::Tensor between = at::zeros({groups, groups}, at::kDouble);
  const double* a = affinity.const_data_ptr<double>();
  double* b = between.mutable_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const auto g = class_to_group[static_cast<size_t>(i)], h = class_to_group[static_cast<size_t>(j)];
      if (g < h) b[g * groups + h] += a[i * n + j];
    }
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t h = g + 1; h < groups; ++h) {
      b[g * groups + h] /= sizes[static_cast<size_t>(g)] * sizes[static_cast<size_t>(h)];
      b[h * groups + g] = b[g * groups + h];
    }
  return between;
}

at::Tensor affinity_among(const at::Tensor& affinity, const std::vector<int64_t>& members) {
  const int64_t n = affinity.size(0), size = std::ssize(members);
  at::Tensor part = at::empty({size, size}, at::kDouble);
  const double* a = affinity.const_data_ptr<double>();
  double* p = part.mutable_data_ptr<double>();
  for (const int64_t i : members)
    for (const int64_t j : members) *p++ = a[i * n + j];
  return part;
}

}  // namespace sparsight
