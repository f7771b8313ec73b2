// A trained model with all that is needed to use it, from a run folder or a single checkpoint file.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

struct LoadedModel {
  std::string path;                   // of the checkpoint
  int64_t step = 0;                   // of training
  Json config;                        // the sections of catalogue/model_sections.h, resolved, with the overrides
  DataInfo data;                      // what it was trained on
  ImageShape shape;                   // of the images it takes
  TransformPipeline eval_transforms;  // from a uint8 image to the pixels in 0..1 that the model takes
  std::shared_ptr<ImageModel> model;  // with averaged weights where the checkpoint has them
  std::string weights = "model";      // "ema", "swa": which average it has
};

// `path`: a run folder, of which the checkpoint `which` ("best" or "last"; "" for the best there is) is taken, or a
// checkpoint file. `overrides` change the checkpoint's configuration, also of the model: "router.eval_k=1". The model
// normalises as it was trained, unless they say otherwise with a `normalize` step in transforms.eval. Raises
// Error where there is no checkpoint, or it is damaged or its weights do not fit the configuration; UsageError for
// overrides that are wrong by themselves.
LoadedModel load_model(const std::string& path, const std::string& which = "",
                       const std::vector<std::string>& overrides = {});

// What the model takes, [C,H,W] fp32 of loaded.shape, made of image: [C,H,W] uint8. Raises Error, naming no image,
// where the evaluation transforms do not make that of it.
at::Tensor model_image(const LoadedModel& loaded, const at::Tensor& image);

// Puts packed experts of `type`, one of weight_type_names(), in the place of the model's own, whose memory is then free
// (Experts::packed). Raises Error where it has none that can be packed.
void pack_experts(LoadedModel& loaded, const std::string& type);

// The shape that images of `data` have after `transforms`.
ImageShape shape_after(const TransformPipeline& transforms, const DataInfo& data);

}  // namespace sparsight
