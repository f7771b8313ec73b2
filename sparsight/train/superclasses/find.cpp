#include "sparsight/train/superclasses/find.h"

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/train/superclasses/out_of_fold.h"

namespace sparsight {

ConfusionKind confusion_kind(const std::string& name) {
  return static_cast<ConfusionKind>(find_position(name, {"hard", "soft", "top5"}, "confusion"));
}

std::vector<int64_t> given_groups(const std::string& groups, const std::vector<int64_t>& given, int64_t classes) {
  if (groups.empty()) return {};
  if (groups == "data" && given.empty())
    fail_usage("--groups data: the dataset has no super-classes of its own; name a map file, or leave out --groups");
  std::vector<int64_t> class_to_group = groups == "data" ? given : read_superclass_map(groups);
  if (std::ssize(class_to_group) != classes)
    fail_usage(printable(groups), " has ", class_to_group.size(), " lines, but there are ", classes,
               " classes; a map has one line for each");
  return class_to_group;
}

FoundSuperclasses superclasses_of_run(const std::string& run, const std::string& checkpoint, SuperclassSearch search,
                                      const std::vector<std::string>& overrides) {
  // What does not fit is said before anything is counted, which may take hours.
  const LoadedModel loaded = load_model(run, checkpoint);
  need_softmax(loaded);
  const int64_t classes = std::ssize(loaded.data.classes);
  search.clusters.class_to_group = given_groups(search.groups, loaded.data.super_class_of, classes);
  check_cluster_options(search.clusters, classes);
  CountedConfusion counted;
  if (search.confusion == "oof") {
    if (!overrides.empty())
      fail_usage("--set ", overrides.front(),
                 ": the models of --confusion oof are trained with the run's own "
                 "configuration; leave it out");
    counted = out_of_fold_confusion(run, search.folds);
  } else {
    counted = held_out_confusion({run, checkpoint, search.split, confusion_kind(search.confusion), overrides});
  }
  return find_superclasses(counted.counts, search.clusters, counted.classes, counted.source);
}

}  // namespace sparsight
