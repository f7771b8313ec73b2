// The confusion matrix of a run on images that it neither trained on nor is tested on.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/superclasses/confusion_counts.h"
#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

struct CountedConfusion {
  at::Tensor counts;                 // [K,K]
  std::vector<std::string> classes;  // K names
  Json source;                       // {"run", "checkpoint", "confusion", "split", "images", "left_out"}
};

struct HeldOutRequest {
  std::string run;         // a run folder or a checkpoint file
  std::string checkpoint;  // as load_model() takes it
  std::string split = "val";
  ConfusionKind kind = ConfusionKind::hard;
  std::vector<std::string> overrides;  // of data.root, [loader] and run.threads
};

// Counts the predictions of a run on its validation split. That split must be held out: Raises UsageError where the run
// validates on its test split (the message says which setting holds images out) or is tested on its validation split,
// for another split, for data with several labels per image and for a model without softmax. Raises Error where images
// of the split are also training or test images: a single one by its name, or more than 1 % by their pixels. Fewer
// copies under other names, which published datasets have, are left out with a warning.
CountedConfusion held_out_confusion(const HeldOutRequest& request);

// Raises UsageError unless `split` is "val" and neither training nor test images by its making. of: what has the
// splits, in messages.
void check_held_out(const DataSplits& splits, const std::string& split, const std::string& of);

// Raises UsageError unless the model's classes exclude each other.
void need_softmax(const LoadedModel& loaded);

// The positions of `part` without the images that `others` have too, as above; name: of the part, in messages.
std::vector<int64_t> positions_apart(const DataSet& part, const std::string& name,
                                     const std::vector<std::pair<std::string, DataSetPtr>>& others);

// Counts the predictions of the model on these images.
void count_confusion(LoadedModel& loaded, const DataSetPtr& images, ConfusionCounts& counts);

}  // namespace sparsight
