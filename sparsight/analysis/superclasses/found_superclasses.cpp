#include "sparsight/analysis/superclasses/found_superclasses.h"

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/analysis/superclasses/published_division.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr size_t kListedEigenvalues = 8;  // beyond those of the super-classes

Json cluster_json(const ClusterMeasures& cluster, size_t number, const std::vector<std::string>& classes) {
  Json largest = Json::array(), names = Json::array();
  const auto name = [&](int64_t k) { return classes[static_cast<size_t>(k)]; };
  for (const int64_t k : cluster.classes) names.push_back(name(k));
  for (const ClassConfusion& confusion : cluster.largest)
    largest.push_back(
        {{"true", name(confusion.truth)}, {"predicted", name(confusion.predicted)}, {"count", confusion.count}});
  return {{"superclass", number},
          {"size", cluster.classes.size()},
          {"classes", names},
          {"inside_share", cluster.inside_share ? Json(*cluster.inside_share) : Json()},
          {"largest_confusions", largest}};
}

}  // namespace

FoundSuperclasses find_superclasses(const at::Tensor& counts, const ClusterOptions& options,
                                    std::vector<std::string> classes, Json source) {
  FoundSuperclasses found{counts, options, cluster_classes(counts, options), {}, {}, std::move(source)};
  found.measures = measure_partition(counts, found.clusters.class_to_superclass);
  found.classes = printable_names(classes);
  for (int64_t k = std::ssize(found.classes); k < counts.size(0); ++k) found.classes.push_back(std::to_string(k));
  SPARSIGHT_CHECK(std::ssize(found.classes) == counts.size(0));
  return found;
}

Json superclass_json(const FoundSuperclasses& found) {
  const ClusterOptions& options = found.options;
  std::vector<double> eigenvalues = found.clusters.eigenvalues;
  const size_t listed = static_cast<size_t>(options.superclasses) + kListedEigenvalues;
  if (eigenvalues.size() > listed) eigenvalues.resize(listed);
  const int64_t groups = superclass_count(options.class_to_group);
  Json json = {{"format", "sparsight-superclasses"},
               {"version", 1},
               {"superclasses", options.superclasses},
               {"classes", found.classes.size()},
               {"method", options.method},
               {"tau", options.tau},
               {"min_cluster_size", options.min_cluster_size},
               {"given_groups", groups > 0 ? Json(groups) : Json()},
               {"source", found.source},
               {"modularity", found.measures.modularity},
               {"normalised_cut", found.measures.normalised_cut},
               {"inside_share", found.measures.inside_share},
               {"eigenvalues", eigenvalues},
               {"eigengap", found.clusters.eigengap ? Json(*found.clusters.eigengap) : Json()}};
  if (const auto rows = published_rows(found.classes, found.clusters.class_to_superclass))
    json["published_rows"] = {{"rows", rows->rows}, {"together", rows->together}};
  json["clusters"] = Json::array();
  for (size_t e = 0; e < found.measures.clusters.size(); ++e)
    json["clusters"].push_back(cluster_json(found.measures.clusters[e], e, found.classes));
  return json;
}

}  // namespace sparsight
