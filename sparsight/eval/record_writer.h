// Writes one record for each image of an evaluation, so that models can be compared image by image. Letters:
// moe/axes.md; n images, K classes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/eval/observer.h"
#include "sparsight/io/safetensors_rows.h"

namespace sparsight {

// The metadata in an index.
struct RecordSource {
  DataInfo data;
  std::string split;       // "test"
  std::string checkpoint;  // its file
  int64_t step = 0;        // of training
  std::string weights;     // "model" or "ema"
  Json settings;           // the resolved configuration
};

// Memory is bounded by a batch. On the disk an image takes 32 + 4 K bytes (8 K in fp64; K more of multi-label data),
// its id, and 8 E for each MoE layer (4 E for a soft one), and twice that from commit() until the writer is destroyed.
class RecordWriter : public EvaluationObserver {
 public:
  // Creates `folder` if it is missing. Raises UsageError if it holds anything other than records.
  explicit RecordWriter(const std::string& folder);
  ~RecordWriter() override;  // without commit() nothing is written, and earlier records are unchanged
  // Adds the columns of guided routers. super_class_of: [K], empty: none is guided; names: [G]. Called before the first
  // batch.
  void add_super_classes(const std::vector<int64_t>& super_class_of, const std::vector<std::string>& names);
  void observe(const Batch& batch, const ModelOutput& output) override;
  // Replaces the folder's records. The index is written last: a folder without it holds no records.
  void commit(const RecordSource& source);

  int64_t images() const { return images_; }
  int64_t bytes() const { return columns_->bytes(); }

 private:
  struct Layer {
    std::string name;
    int64_t experts = 0;
    bool soft = false;
    bool guided = false;   // has router_choice
    double top_gates = 0;  // sum of the gates of first choices
    int64_t first_choices = 0;
  };
  Layer& noted_layer(const std::string& name, int64_t experts, bool soft);
  void add_choices(const Batch& batch, const std::vector<Routing>& routings);
  void add_routing(const Routing& routing, int64_t images);
  void add_soft_routing(const SoftRouting& routing, int64_t images);

  std::string folder_;
  bool made_folder_ = false;
  std::unique_ptr<SafetensorsRowWriter> columns_;
  std::vector<Layer> layers_;  // in forward order
  int64_t images_ = 0, id_bytes_ = 0;
  at::ScalarType logits_type_ = at::kFloat;  // or fp64, of a model in fp64
  bool multi_label_ = false;
  std::vector<int64_t> super_class_of_;     // [K]; empty: no guided routers
  std::vector<std::string> super_classes_;  // [G] names
};

}  // namespace sparsight
