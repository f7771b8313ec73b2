// A trained model with all that is needed to use it, from a run folder or a single checkpoint file.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sparsight/data/data_set.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

struct LoadedModel {
  std::string path;                   // of the checkpoint
  int64_t step = 0;                   // of training
  Json config;                        // resolved
  DataInfo data;                      // what it was trained on
  ImageShape shape;                   // of the images it takes
  TransformPipeline eval_transforms;  // from a uint8 image to what the model takes
  std::shared_ptr<ImageModel> model;  // in evaluation mode; with averaged weights where training averages them
};

// `path`: a run folder, of which the checkpoint `which` ("best" or "last"; "" for the best there is) is taken, or a
// checkpoint file. Raises Error where there is none, or it is damaged or does not fit its own configuration.
LoadedModel load_model(const std::string& path, const std::string& which = "");

// Holds the model's experts for inference in `type`, one of held_type_names(): see Experts::hold(). Raises Error where
// it has none that can be held.
void hold_experts(LoadedModel& loaded, const std::string& type);

// The shape that images of `data` have after `transforms`.
ImageShape shape_after(const TransformPipeline& transforms, const DataInfo& data);

}  // namespace sparsight
