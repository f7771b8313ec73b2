#include "sparsight/data/sets/splits.h"

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/decorators/stratified.h"
#include "sparsight/data/decorators/subset.h"

namespace sparsight {
namespace {

constexpr size_t kNamedClasses = 5;

DataSetPtr limited(const DataSetPtr& set, int64_t limit, uint64_t seed) {
  if (limit == 0 || limit >= set->size()) return set;
  return std::make_shared<SubsetDataSet>(set, balanced_subset(*set, limit, seed));
}

// Warns of classes without images in one split.
void warn_of_missing_classes(const DataSet& set, const std::string& split) {
  const std::vector<std::string>& classes = set.info().classes;
  std::vector<bool> seen(classes.size());
  for (int64_t i = 0; i < set.size(); ++i)
    for (const int64_t label : set.labels(i)) seen.at(static_cast<size_t>(label)) = true;
  std::vector<std::string> missing;
  for (size_t k = 0; k < classes.size(); ++k)
    if (!seen[k]) missing.push_back(cat("\"", classes[k], "\""));
  if (missing.empty()) return;
  const size_t count = missing.size();
  if (count > kNamedClasses) missing.resize(kNamedClasses);
  const char* advice = split == "training" ? "; the model cannot learn them" : "; nothing is measured on them there";
  log_warning(set.info().name, " has no ", split, " images of ", count, " of its ", classes.size(),
              " classes: ", join(missing), count > kNamedClasses ? ", ..." : "", advice);
}

}  // namespace

void SplitOptions::declare(OptionSet& set) {
  set.real("validation", &validation, {0, 0.9},
           "fraction of the training images used for validation if the dataset has no validation split; 0: the "
           "test split is used");
  set.integer("train_limit", &train_limit, {0}, "maximum number of training images, balanced over classes; 0: all");
  set.integer("test_limit", &test_limit, {0},
              "maximum number of validation and of test images, balanced over classes; 0: all");
}

DataSplits make_splits(DataSplits parts, const SplitOptions& options, const DataContext& context) {
  const std::string& name = parts.train->info().name;
  if (parts.train->size() == 0) fail(name, " has no training images");
  if (!parts.validation && options.validation > 0) {
    auto [rest, kept] = stratified_split(*parts.train, options.validation, context.seed);
    if (rest.empty() || kept.empty())
      fail(name, ": data.validation = ", options.validation, " of ", parts.train->size(),
           " images leaves none for training or none for validation; use another fraction or more images");
    const DataSetPtr all = parts.train;
    parts.train = std::make_shared<SubsetDataSet>(all, std::move(rest));
    parts.validation = std::make_shared<SubsetDataSet>(all, std::move(kept));
  }
  if (!parts.validation && !parts.test) fail_usage(name, " has no test split; set data.validation above 0");
  if (!parts.validation) parts.validation = parts.test, parts.missing = "validation";
  if (!parts.test) parts.test = parts.validation, parts.missing = "test";
  if (parts.validation->size() == 0 || parts.test->size() == 0) fail(name, " has no images to test with");
  const bool same = parts.test == parts.validation;
  warn_of_missing_classes(*parts.train, "training");
  warn_of_missing_classes(*parts.validation, same ? "validation and test" : "validation");
  if (!same) warn_of_missing_classes(*parts.test, "test");
  parts.train = limited(parts.train, options.train_limit, context.seed);
  parts.validation = limited(parts.validation, options.test_limit, context.seed);
  parts.test = same ? parts.validation : limited(parts.test, options.test_limit, context.seed);
  return parts;
}

}  // namespace sparsight
