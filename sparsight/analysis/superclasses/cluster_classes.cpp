#include "sparsight/analysis/superclasses/cluster_classes.h"

#include <algorithm>
#include <set>

#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/analysis/superclasses/clustering_methods.h"
#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/analysis/superclasses/spectral_embedding.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"

namespace sparsight {
namespace {

ClassClusters cluster_graph(const at::Tensor& affinity, int64_t clusters, const ClusterOptions& options) {
  const ClusteringMethod& method = clustering_method(options.method);
  ClassClusters found;
  SpectralEmbedding embedding;
  if (method.is_spectral) {
    embedding = spectral_embedding(affinity, clusters, options.tau);
    found.eigenvalues = embedding.eigenvalues;
    found.eigengap = embedding.gap;
    if (embedding.gap && *embedding.gap < kSmallEigengap)
      log_warning("eigenvalues ", clusters, " and ", clusters + 1, " of the confusion graph differ by only ",
                  *embedding.gap, ", so its division into ", clusters,
                  " is one of several equally good ones; choose another number of super-classes or count more images");
  }
  found.class_to_superclass = method.cluster(affinity, embedding.points, clusters);
  return found;
}

// Splits the largest cluster (of several the first) in two.
std::vector<int64_t> split_largest(std::vector<int64_t> item_to_cluster, const at::Tensor& affinity,
                                   const ClusterOptions& options) {
  const auto members = cluster_members(item_to_cluster);
  const auto largest = *std::ranges::max_element(members, {}, [](const auto& list) { return list.size(); });
  const at::Tensor among = affinity_among(affinity, largest);
  std::vector<int64_t> halves;
  if (volume(among) > 0) {
    halves = cluster_graph(among, 2, options).class_to_superclass;
  } else {
    log_warning("the ", largest.size(), " classes from class ", largest.front(),
                " on are never taken for each other; they are split by their order");
    for (size_t i = 0; i < largest.size(); ++i) halves.push_back(2 * i >= largest.size());
  }
  const int64_t added = std::ssize(members);
  for (size_t i = 0; i < largest.size(); ++i)
    if (halves[i] == 1) item_to_cluster[largest[i]] = added;
  return renumbered(item_to_cluster);
}

// Merges the smallest cluster (of several the first) into the one with the largest mean affinity to it.
std::vector<int64_t> merge_smallest(std::vector<int64_t> item_to_cluster, const at::Tensor& affinity) {
  const auto members = cluster_members(item_to_cluster);
  const int64_t smallest =
      std::ranges::min_element(members, {}, [](const auto& list) { return list.size(); }) - members.begin();
  const at::Tensor between = group_affinity(affinity, item_to_cluster);
  const double* row = between.const_data_ptr<double>() + smallest * between.size(1);
  int64_t nearest = -1;
  for (int64_t c = 0; c < std::ssize(members); ++c)
    if (c != smallest && (nearest < 0 || row[c] > row[nearest])) nearest = c;
  for (const int64_t item : members[smallest]) item_to_cluster[item] = nearest;
  return renumbered(item_to_cluster);
}

bool has_smaller(const std::vector<int64_t>& item_to_cluster, int64_t size) {
  return std::ranges::any_of(cluster_members(item_to_cluster),
                             [&](const auto& list) { return std::ssize(list) < size; });
}

std::vector<int64_t> with_min_size(std::vector<int64_t> item_to_cluster, const at::Tensor& affinity,
                                   const ClusterOptions& options) {
  std::set<std::vector<int64_t>> seen;
  while (has_smaller(item_to_cluster, options.min_cluster_size)) {
    if (!seen.insert(item_to_cluster).second)
      fail("merging the super-classes of fewer than ", options.min_cluster_size,
           " classes and splitting the largest comes back to the same ones; choose a lower minimum size or another "
           "number of super-classes");
    item_to_cluster = split_largest(merge_smallest(item_to_cluster, affinity), affinity, options);
  }
  return item_to_cluster;
}

}  // namespace

void check_cluster_options(const ClusterOptions& options, int64_t classes) {
  clustering_method(options.method);
  const int64_t wanted = options.superclasses;
  if (wanted < 1 || wanted > classes)
    fail_usage(wanted, " super-classes of ", classes, " classes; choose 1 to ", classes);
  if (!(options.tau > 0 && options.tau <= 1e6)) fail_usage("tau is ", options.tau, "; choose a number above 0, as 0.1");
  if (options.min_cluster_size < 1 || options.min_cluster_size > classes / wanted)
    fail_usage("at least ", options.min_cluster_size, " classes in each of ", wanted, " super-classes of ", classes,
               " classes; choose 1 to ", classes / wanted);
  if (!options.class_to_group.empty() && std::ssize(options.class_to_group) != classes)
    fail_usage("the given division is of ", options.class_to_group.size(), " classes, the confusion matrix of ",
               classes, "; use those of the same classes");
}

ClassClusters cluster_classes(const at::Tensor& counts, const ClusterOptions& options) {
  const at::Tensor affinity = confusion_affinity(counts);
  check_cluster_options(options, affinity.size(0));
  const int64_t groups = superclass_count(options.class_to_group);
  ClassClusters found;
  if (groups == 0) {
    found = cluster_graph(affinity, options.superclasses, options);
  } else if (options.superclasses < groups) {
    const at::Tensor between = group_affinity(affinity, options.class_to_group);
    if (volume(between) <= 0)
      fail("no class is taken for one of another of the ", groups,
           " given groups, so nothing says which of them are alike");
    found = cluster_graph(between, options.superclasses, options);
    std::vector<int64_t> of_class;
    for (const int64_t group : options.class_to_group) of_class.push_back(found.class_to_superclass[group]);
    found.class_to_superclass = renumbered(of_class);
  } else {
    found.class_to_superclass = renumbered(options.class_to_group);
    for (int64_t e = groups; e < options.superclasses; ++e)
      found.class_to_superclass = split_largest(found.class_to_superclass, affinity, options);
  }
  found.class_to_superclass = with_min_size(found.class_to_superclass, affinity, options);
  return found;
}

}  // namespace sparsight
