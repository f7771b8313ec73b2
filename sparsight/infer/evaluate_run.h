// Evaluates a trained model on a split of a dataset.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/infer/bare_options.h"

namespace sparsight {
namespace dist {
class Group;
}

struct LoadedModel;
struct ModelInput;
struct ModelOutput;

struct EvaluateRunOptions {
  std::string path;                    // a run folder, a checkpoint file, or a file of weights alone
  std::string checkpoint;              // "best", "last" or "" for best, or last if there is no best; for run folders
  std::string weights;                 // one of weight_type_names(), or "" for the weights as trained
  std::string split = "test";          // "train", "val" or "test"
  std::string routing;                 // a file of routings that replace the routers' own, or ""
  std::string save_routing;            // a file to write the routings to, or ""
  bool flip = false;                   // predict from the image and its mirror image (eval/mirrored_view.h)
  std::string records;                 // folder to write a record for each image into (eval/record_writer.h); "": none
  bool confused = false;               // write the confused images into the run folder (report/run/confused_file.h)
  std::vector<std::string> overrides;  // of the run's configuration: "data.root=/elsewhere", "router.eval_k=1"
  BareOptions bare;                    // for a file of weights alone
  bool pack_cache = false;             // of a frozen model: keep packed weights beside it
};

// How a trained model predicts: with more than itself after some algorithms (train/trained_predictor.h).
using MakePredictor = std::function<std::function<ModelOutput(const ModelInput& input)>(const LoadedModel& loaded)>;

// The "eval" record of metrics.jsonl (docs/file_formats.md), without `epoch`. Raises Error if the split is empty, its
// classes are not those of the model, or the loss is not finite.
Json evaluate_run(const EvaluateRunOptions& options, const MakePredictor& make_predictor);
// The same, shared out over the ranks of a group: all return it, and rank 0 writes the files.
Json evaluate_run(const EvaluateRunOptions& options, const MakePredictor& make_predictor, dist::Group& group);
Json evaluate_run(const EvaluateRunOptions& options);  // with the model alone

}  // namespace sparsight
