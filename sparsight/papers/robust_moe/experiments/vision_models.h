// The models of the experiments on images: a small vision transformer, the V-MoE that is built on it, and a dense one
// that costs as much as the V-MoE; trained as usual, or then fine-tuned on attacked images.
//
// Differs from the paper: its models are pre-trained on 300 million private images. These start from random weights, on
// the data of the experiment, and are several hundred times smaller. Only orderings can be compared.
#pragma once

#include <string>
#include <vector>

#include "sparsight/models/image_model.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::robust_moe {

struct VisionOptions {
  int64_t width = 96, depth = 6, heads = 3, patch = 4;
  int64_t experts = 8, k = 2;
  double capacity = 0;
  int64_t train_images = 0, test_images = 1000, epochs = 40, adversarial_epochs = 10, batch = 128;
  int64_t adversarial_updates = 0;
  double lr = 1e-3, adversarial_lr = 5e-4;
  int64_t adversarial_steps = 10;
  double adversarial_epsilon = 8;  // in 255ths, as all of them
  void declare(OptionSet& set);
};

// The data of an experiment.
enum class VisionData { cifar100, mnist };
DataChoice vision_choice(VisionData data);
const char* vision_needs(VisionData data);  // for Figure::needs

// A model of an experiment.
inline constexpr const char *kVit = "ViT", *kVmoe = "V-MoE", *kWideVit = "ViT, same cost";
inline constexpr const char *kStandard = "standard", *kAdversarial = "adversarial";
struct VisionModel {
  std::string name = kVit;
  std::string training = kStandard;
  int64_t experts = 8;  // of kVmoe
};

// All sections of the configuration that trains it; `weights`: those that adversarial fine-tuning starts from.
Json vision_sections(const VisionModel& model, const VisionOptions& options, VisionData data, const FigureRun& run,
                     int64_t seed, const std::string& weights = "");

struct VisionCost {
  double gflop = 0;       // of a forward pass of one image, 2 per multiply-add
  double parameters = 0;  // millions
};
VisionCost vision_cost(const VisionModel& model, const VisionOptions& options, VisionData data, const FigureRun& run);

// The MoE layers of kVmoe, in order: "blocks.1.mlp", ...
std::vector<std::string> moe_layers(const VisionOptions& options);

}  // namespace sparsight::robust_moe
