// What is said about an image: its classes, and the experts that its decisions chose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"

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

struct PredictionSummary {
  std::string image;                      // its name
  std::vector<ClassProbability> classes;  // the `top` most probable, descending
  std::vector<LayerExperts> layers;       // one per decision
};

// The experts that were used, the most used first. counts: [E], how many kept assignments each has.
LayerExperts rank_experts(const std::string& layer, const std::vector<int64_t>& counts);

// The text of stdout, and a JSON object: {"image", "class", "label", "probability", "classes": [...], "experts":
// {...}}, of guided routers also "super_classes": {layer: {"super_class", "number", "probability"}}.
std::string to_text(const PredictionSummary& prediction);
Json to_json(const PredictionSummary& prediction);

}  // namespace sparsight
