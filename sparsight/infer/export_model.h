// `sparsight export`: a trained model as a frozen model or as an ONNX file, and whether its answers are still those of
// the run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/infer/bare_options.h"

namespace sparsight {

struct LoadedModel;

struct ExportRequest {
  std::string path;                    // a run folder, a checkpoint, or a file of weights alone
  std::string checkpoint;              // "best" or "last"; "": best, or last where there is no best
  std::vector<std::string> overrides;  // of the run's configuration
  BareOptions bare;                    // for a file of weights alone
  std::string format = "sparsight";    // one of export_formats()
  std::string weights = "fp32";        // one of weight_type_names(), or "auto": int8 where max_drop allows it
  std::string out;                     // "": exported_path()
  bool replace = false;                // an existing file at `out`
  std::string split;                   // to compare answers on; "": validation, else test
  int64_t images = 0;                  // maximum number of them; 0: all
  bool compares = true;                // false: the dataset is not read
  std::optional<double>
      max_drop;  // with "auto" 0.3 by default; in points of top-1: raises Error beyond it, and writes nothing
  std::optional<double>
      smooth;  // strength of smooth_channels() of models/smooth_channels.h, before weights are rounded
};

inline const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> names{"sparsight", "onnx"};
  return names;
}

// Where a model is written by default: in its run folder, or beside its file.
std::string exported_path(const ExportRequest& request);

// {"file", "bytes", "weights"} and, where answers were compared, {"split", "images", "accuracy", "fp32_accuracy",
// "drop", "agreement"}: accuracies 0 to 1, the drop in points, the agreement as the share of images with the same best
// class. "auto" adds "types", the number of steps with matrices in each type, and `smooth` "smoothed_layers". Raises
// Error where the model has no form without tensors (with the reason), or its answers are not finite. check: may refuse
// the loaded model.
Json export_model(const ExportRequest& request, const std::function<void(const LoadedModel&)>& check = {});

}  // namespace sparsight
