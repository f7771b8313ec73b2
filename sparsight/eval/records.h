// Reads the per-image records of an evaluation (eval/record_writer.h). Files are untrusted: invalid ones raise a
// one-line Error before memory is allocated for them. Letters: moe/axes.md; n images, K classes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

struct RecordedLayer {
  std::string layer;                         // "blocks.3.mlp"
  int64_t experts = 0;                       // E
  at::Tensor chosen;                         // [n,E] int32: assignments of each image's tokens before capacity
  at::Tensor kept;                           // [n,E] int32: after capacity
  at::Tensor combine;                        // [n,E] fp32, of a soft layer, which has no chosen and kept
  std::optional<double> mean_top_gate = {};  // mean gate of the first choices
};

struct Records {
  std::string folder;
  std::string data, split, checkpoint;
  std::vector<std::string> classes, domains;  // K; at least one
  std::vector<std::string> ids;               // [n]
  at::Tensor label, domain, prediction;       // [n] int64
  at::Tensor label_sets = {};                 // [n,K] bool of multi-label data, of which label is the first class
  at::Tensor logits;                          // [n,K] fp32, or fp64 of a model in fp64
  std::vector<RecordedLayer> layers;          // in forward order
  Json settings;                              // the resolved configuration, or null
  bool robust = false;                        // read_compared() of an attack's folder

  int64_t images() const { return label.size(0); }
  bool multi_label() const { return label_sets.defined(); }
  // [n] bool: whether the prediction is the label, or one of the labels.
  at::Tensor correct() const;
};

struct RecordColumns {
  bool logits = true, experts = true;
};

// Maximum bytes of tensors read from one folder.

// The folder of the records at `path`: itself or, of a run folder and of an attack's, its folder records/. Raises Error
// for a run folder without records and an attack that is not finished. Of a file, FILE.records beside it.
std::string records_folder(const std::string& path);

// Removes the records in the folder records/ of the run at `run`, and no other file, nor any behind a link.
void remove_run_records(const std::string& run);

// `columns` selects what is read; other tensors are undefined, and `layers` is empty without them.
Records read_records(const std::string& folder, const RecordColumns& columns = {});

}  // namespace sparsight
