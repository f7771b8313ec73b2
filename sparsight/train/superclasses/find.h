// Super-classes from a trained run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/analysis/superclasses/found_superclasses.h"
#include "sparsight/train/superclasses/held_out_confusion.h"

namespace sparsight {

// Which confusions are counted, and how they are clustered.
struct SuperclassSearch {
  std::string confusion = "hard";  // "hard", "soft", "top5" of the held-out images; "oof": out-of-fold, hard
  std::string split = "val";       // of the held-out images
  int64_t folds = 5;               // of "oof"
  std::string groups;              // a given division: "data" for that of the dataset, or a map file; "": none
  ClusterOptions clusters;         // class_to_group is read from `groups`
};

// Counts the confusions of the run and clusters them. Raises errors as held_out_confusion(), out_of_fold_confusion()
// and cluster_classes() do.
FoundSuperclasses superclasses_of_run(const std::string& run, const std::string& checkpoint, SuperclassSearch search,
                                      const std::vector<std::string>& overrides);

// The kind that "hard", "soft" or "top5" names. Raises UsageError for others.
ConfusionKind confusion_kind(const std::string& name);

// [K] the division that `groups` names: `given` for "data", else that of the file. Raises UsageError where there is
// none or it is not of `classes` classes.
std::vector<int64_t> given_groups(const std::string& groups, const std::vector<int64_t>& given, int64_t classes);

}  // namespace sparsight
