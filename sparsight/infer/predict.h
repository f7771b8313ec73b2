// The prediction for one image, and which experts it used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/infer/loaded_model.h"
#include "sparsight/models/routing_file.h"

namespace sparsight {

struct ClassProbability {
  int64_t label = 0;
  std::string name;
  double probability = 0;  // 0 to 1
};

struct ExpertShare {
  int64_t expert = 0;
  double share = 0;  // of the image's kept assignments, 0 to 1
};

// What a guided router takes an image for.
struct RoutedSuperClass {
  int64_t number = 0;      // the super-class and its expert
  std::string name;        // of the super-class, or of its first classes
  double probability = 0;  // 0 to 1, of the router, without noise
};

struct LayerExperts {
  std::string layer;                                 // "blocks.3.mlp"
  std::vector<ExpertShare> shares;                   // experts that were used, the busiest first
  std::optional<RoutedSuperClass> super_class = {};  // nothing where the router is not guided
};

struct Prediction {
  std::string image;                      // its name
  std::vector<ClassProbability> classes;  // the `top` most probable, descending
  std::vector<LayerExperts> layers;       // one per decision
  Routings routings;                      // the decisions themselves
};

// image: [C,H,W] uint8 with the channels of loaded.data; any height and width that the transforms accept. One image at
// a time, so that predictions do not depend on other images. Raises Error naming the image for another shape, or if the
// model's output is not finite.
// replay: routings of one image to apply instead of the routers' own.
Prediction predict(const LoadedModel& loaded, const at::Tensor& image, const std::string& name, int64_t top,
                   const Routings& replay = {});

// Predictions for several images at once, equal to those one by one: every image is a capacity group of its own. They
// may differ in the last bits, since matrix products of other sizes round differently.
// inputs: [B,C,H,W], each from model_image(). names: [B]. replay: routings of B images. Raises Error naming the image
// if an output is not finite.
std::vector<Prediction> predict_batch(const LoadedModel& loaded, const at::Tensor& inputs,
                                      const std::vector<std::string>& names, int64_t top, const Routings& replay = {});

// The text of stdout, and a JSON object: {"image", "class", "label", "probability", "classes": [...], "experts":
// {...}}, of guided routers also "super_classes": {layer: {"super_class", "number", "probability"}}.
std::string to_text(const Prediction& prediction);
Json to_json(const Prediction& prediction);

}  // namespace sparsight
