// The images of a dataset's split as an attack takes them: labelled, numbered, in 0..1.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/run/attack_request.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

struct AttackedBatch {
  AttackBatch batch;             // image: the numbers in the split; label: [B], or [B,K] bool of multi-label data
  at::Tensor domains;            // [B] int64
  std::vector<std::string> ids;  // [B]
  std::string checksum;          // of fp32 pixels and labels
};

class AttackedImages {
 public:
  // request.images images of the split, drawn evenly over its classes, always the same; 0: all. Of
  // request.only_classes alone, if any are given; of several labels of an image one is enough. Raises Error if the
  // split is missing or empty, its classes are not those of the model, or it has fewer images; UsageError for classes
  // that do not exist. Pixels are fp32, or fp64 with request.precision; they have the same values in both.
  AttackedImages(const LoadedModel& loaded, const AttackRequest& request);

  int64_t size() const { return std::ssize(chosen_); }
  int64_t eligible() const { return eligible_; }  // images of the split that are of these classes
  // Names of the classes whose images alone are attacked, or null.
  Json only_classes() const;
  // Whether an image has another label than this class.
  bool has_label_other_than(int64_t label) const;
  const DataInfo& info() const { return data_->info(); }
  // What happens to the images before they are attacked: {"transforms", "resized_to"}: the evaluation transforms, and
  // [height, width] where images that these leave in another size were resized and cropped to the model's; else null.
  // Known once images have been read.
  Json preprocessing() const;
  // The chosen images first .. last - 1, in the order of the split. Raises Error for an unreadable image.
  AttackedBatch read(int64_t first, int64_t last) const;

 private:
  const LoadedModel& loaded_;
  DataSetPtr data_;
  std::vector<int64_t> classes_;  // numbers; empty: all
  int64_t eligible_ = 0;
  std::vector<int64_t> chosen_;  // numbers in the split
  at::ScalarType type_;
};

}  // namespace sparsight
