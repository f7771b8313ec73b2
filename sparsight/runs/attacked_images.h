// The images of a dataset's split as an attack takes them: labelled, numbered, in 0..1.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/attack_batch.h"
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
  // The first `count` images of the split; 0: all. Raises Error if the split is missing or empty, its classes are not
  // those of the model, or it has fewer images. type: of the pixels, fp32 or fp64; they have the same values in both.
  AttackedImages(const LoadedModel& loaded, const std::string& split, int64_t count, at::ScalarType type = at::kFloat);

  int64_t size() const { return count_; }
  int64_t split_size() const { return data_->size(); }
  const DataInfo& info() const { return data_->info(); }
  // Images first .. last - 1. Raises Error for an unreadable image.
  AttackedBatch read(int64_t first, int64_t last) const;

 private:
  const LoadedModel& loaded_;
  DataSetPtr data_;
  int64_t count_;
  at::ScalarType type_;
};

}  // namespace sparsight
