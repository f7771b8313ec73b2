// The models of the experiments on images: a dense model, the mixture of experts that is built on it, and a dense one
// that costs as much as the mixture; trained as usual, or then fine-tuned on attacked images. On CIFAR-100 and MNIST
// they are small vision transformers and V-MoEs, on CIFAR-10 CNNs (models/whitened_cnn.h) with an MLP or experts on the
// last map.
//
// Differs from the paper: its models are pre-trained on 300 million private images. These start from random weights, on
// the data of the experiment, and are several hundred times smaller. Only orderings can be compared.
#pragma once

#include <string>
#include <vector>

#include "sparsight/models/image_model.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::robust_moe {

// The data of an experiment, which decides on the family of its models.
enum class VisionData { cifar100, cifar10, mnist };

struct VisionOptions {
  VisionData data = VisionData::cifar100;
  int64_t width = 96, depth = 6, heads = 3, patch = 4;  // of transformers
  std::vector<int64_t> widths = {32, 128, 256};         // of CNNs
  int64_t experts = 8, k = 2;
  double capacity = 0;
  int64_t train_images = 0, test_images = 1000, epochs = 40, adversarial_epochs = 10, batch = 128;
  int64_t adversarial_updates = 0;
  double lr = 1e-3, adversarial_lr = 5e-4;
  int64_t adversarial_steps = 10;
  double adversarial_epsilon = 8;  // in 255ths, as all of them
  void declare(OptionSet& set);
};
// Scale paper: as large as here; the paper's own sizes need its data.
VisionOptions vision_options(Scale scale, VisionData data);

DataChoice vision_choice(VisionData data);
const char* vision_needs(VisionData data);   // for Figure::needs
const char* vision_suffix(VisionData data);  // of the names of figures
// "a V-MoE and ViTs of 6 blocks and width 96": the models of an experiment, for notes.
std::string vision_description(const VisionOptions& options);

// A model of an experiment.
inline constexpr const char *kDenseModel = "dense", *kMoeModel = "MoE", *kWideModel = "dense, same cost";
inline constexpr const char *kStandard = "standard", *kAdversarial = "adversarial";
struct VisionModel {
  std::string name = kDenseModel;
  std::string training = kStandard;
  int64_t experts = 8;  // of kMoeModel
};

// All sections of the configuration that trains it; `weights`: those that adversarial fine-tuning starts from.
Json vision_sections(const VisionModel& model, const VisionOptions& options, const FigureRun& run, int64_t seed,
                     const std::string& weights = "");

struct VisionCost {
  double gflop = 0;       // of a forward pass of one image, 2 per multiply-add
  double parameters = 0;  // millions
};
VisionCost vision_cost(const VisionModel& model, const VisionOptions& options, const FigureRun& run);

// The MoE layers of kMoeModel, in order: "blocks.1.mlp", ...
std::vector<std::string> moe_layers(const VisionOptions& options);

}  // namespace sparsight::robust_moe
