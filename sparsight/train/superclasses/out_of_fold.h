// The confusion matrix of a run's training images, each predicted by a model that has not seen it: F-fold out-of-fold
// predictions. For data with few images per class, of which a hold-out would leave too few.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"
#include "sparsight/train/superclasses/held_out_confusion.h"

namespace sparsight {

// [N] the fold of each image, 0 .. folds-1: each class is spread over the folds to within one image; a function of the
// seed and the labels.
std::vector<int64_t> balanced_folds(const DataSet& images, int64_t folds, uint64_t seed);

// Trains `folds` models with the configuration of the run, each without one fold of its training split, and counts the
// predictions (hard) on what each left out. The validation and the test split are not used, and training images with
// copies in the test split are not counted. The models are jobs in RUN/folds (jobs/job_store.h): a killed call goes on
// with the same call, to the same counts. Raises UsageError for fewer than 2 folds or a class with fewer than 2 images,
// and as held_out_confusion() does; Error where a fold failed.
CountedConfusion out_of_fold_confusion(const std::string& run, int64_t folds);

}  // namespace sparsight
