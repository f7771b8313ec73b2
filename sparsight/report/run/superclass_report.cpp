#include "sparsight/report/run/superclass_report.h"

#include <cstdio>

#include "sparsight/analysis/superclasses/published_division.h"
#include "sparsight/core/error.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

std::string four_significant(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string cluster_text(const FoundSuperclasses& found, size_t number) {
  const ClusterMeasures& cluster = found.measures.clusters[number];
  const auto name = [&](int64_t k) { return found.classes[static_cast<size_t>(k)]; };
  const size_t size = cluster.classes.size();
  std::string members, text;
  for (const int64_t k : cluster.classes) members += (members.empty() ? "" : ", ") + name(k);
  text = cat("super-class ", number, ": ", size, size == 1 ? " class" : " classes", ", ",
             percent(cluster.inside_share, 1), " of their confusions inside\n  ", members, "\n");
  for (const ClassConfusion& confusion : cluster.largest)
    text += cat("  ", name(confusion.truth), " taken for ", name(confusion.predicted), ": ",
                four_significant(confusion.count), "\n");
  return text;
}

}  // namespace

std::string superclass_report(const FoundSuperclasses& found) {
  std::string text;
  for (size_t e = 0; e < found.measures.clusters.size(); ++e) text += cluster_text(found, e);
  text += cat("confusions inside super-classes: ", percent(found.measures.inside_share, 1),
              "\nmodularity: ", four_significant(found.measures.modularity),
              "\nnormalised cut: ", four_significant(found.measures.normalised_cut), "\n");
  if (found.clusters.eigengap) text += cat("eigengap: ", four_significant(*found.clusters.eigengap), "\n");
  if (const auto rows = published_rows(found.classes, found.clusters.class_to_superclass))
    text += cat("published super-classes of ImageNet: ", rows->together, " of ", rows->rows,
                " rows have their three classes in one super-class\n");
  return text;
}

}  // namespace sparsight
