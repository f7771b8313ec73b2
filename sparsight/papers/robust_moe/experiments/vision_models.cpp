#include "sparsight/papers/robust_moe/experiments/vision_models.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/error.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::robust_moe {
namespace {

constexpr int64_t kVisionSide = 32;  // MNIST's images are resized to that

struct VisionSet {
  DataChoice choice;
  const char *needs, *suffix;
  int64_t channels, classes;
};
const VisionSet& vision_set(VisionData data) {
  static const VisionSet cifar100{{"cifar100", "glyphs for CIFAR-100"}, "CIFAR-100", "", 3, 100},
      cifar10{{"cifar10", "glyphs for CIFAR-10"}, "CIFAR-10", "_cifar10", 3, 10},
      mnist{{"mnist", "grey glyphs for MNIST"}, "MNIST", "_mnist", 1, 10};
  return data == VisionData::cifar100 ? cifar100 : data == VisionData::cifar10 ? cifar10 : mnist;
}

bool is_cnn(const VisionOptions& options) { return options.data == VisionData::cifar10; }

Json data_section(const VisionOptions& options, const FigureRun& run) {
  const VisionSet& set = vision_set(options.data);
  const int64_t images = options.train_images;
  if (run.data.empty())
    return {{"name", "glyphs"},
            {"classes", 10},
            {"super_classes", 0},
            {"side", kVisionSide},
            {"channels", set.channels},
            {"domains", Json::array({"clean"})},
            {"train", images > 0 ? images : 10000},
            {"validation", 1},
            {"test", options.test_images}};
  return {{"name", set.choice.set},
          {"root", real_folder(set.choice, run)},
          {"validation", 0},
          {"train_limit", images},
          {"test_limit", options.test_images}};
}

Json transforms(VisionData data) {
  const Json normalize = {{"op", "normalize"}, {"preset", vision_set(data).choice.set}};
  const Json resize = {{"op", "resize"}, {"size", {kVisionSide, kVisionSide}}};
  Json crop = {{"op", "random_crop"}, {"size", kVisionSide}, {"padding", 4}}, flip = {{"op", "flip"}};
  switch (data) {
    case VisionData::mnist:
      return {{"train", {resize, normalize}}, {"eval", {resize, normalize}}};
    case VisionData::cifar10:  // configs/cifar/moe.toml
      crop.update({{"padding", 2}, {"padding_mode", "reflect"}});
      flip["alternate"] = true;
      return {{"train", {crop, flip, normalize}}, {"eval", Json::array({normalize})}, {"label_smoothing", 0.2}};
    case VisionData::cifar100:
      break;
  }
  return {{"train", {crop, flip, normalize}}, {"eval", Json::array({normalize})}};
}

void add_experts(Json& sections, const Json& blocks, int64_t experts, const VisionOptions& options) {
  sections["moe"] = {{"blocks", blocks}, {"experts", experts}};
  sections["router"] = {{"name", "softmax_topk"}, {"k", std::min(options.k, experts)}};
  sections["capacity"] = {{"factor", options.capacity}};
  // The choice of the authors' code: the load loss of two experts can be NaN. One expert has nothing to balance.
  if (experts <= 2) sections["losses"] = {{"vmoe_importance", 0}, {"vmoe_load", 0}, {"switch", 0.01}};
}

void add_transformer(Json& sections, const VisionModel& model, const VisionOptions& options) {
  sections["model"] = {{"name", "vit"},
                       {"width", options.width},
                       {"depth", options.depth},
                       {"heads", options.heads},
                       {"patch", options.patch},
                       // K experts of each token in every second block give all MLPs (K + 1) / 2 times the
                       // multiply-adds.
                       {"mlp_ratio", model.name == kWideModel ? 2 * (options.k + 1) : 4}};
  if (model.name != kMoeModel) return;
  Json blocks = Json::array();
  for (int64_t block = 1; block < options.depth; block += 2) blocks.push_back(block);
  add_experts(sections, blocks, model.experts, options);
}

// One expert is an MLP for all positions; with K times the hidden width it costs as much as K experts of each position.
void add_cnn(Json& sections, const VisionModel& model, const VisionOptions& options) {
  sections["model"] = {{"name", "whitened_cnn"}, {"widths", options.widths}};
  add_experts(sections, Json::array({-1}), model.name == kMoeModel ? model.experts : 1, options);
  const int64_t hidden = 2 * options.widths.back();
  sections["moe"]["hidden"] = model.name == kWideModel ? options.k * hidden : hidden;
}

void add_training(Json& sections, const VisionModel& model, const VisionOptions& options) {
  const bool adversarial = model.training == kAdversarial;
  const double lr = adversarial ? options.adversarial_lr : options.lr;
  sections["train"] = {{"epochs", adversarial ? options.adversarial_epochs : options.epochs}, {"keep", "last"}};
  if (is_cnn(options)) {
    sections["train"].update({{"freeze", {"whiten.weight"}}, {"eval_every", 100000}});
    sections["optimizer"] = {{"name", "muon"},           {"lr", lr},
                             {"momentum", 0.6},          {"weight_decay", 0.12},
                             {"vector_lr_factor", 0.02}, {"others", {"experts.b", "head.", "router."}}};
    sections["schedule"] = {{"name", "linear"}};
    return;
  }
  sections["train"]["clip_norm"] = 1;
  sections["optimizer"] = {{"name", "adamw"}, {"lr", lr}};
  sections["schedule"] = {{"name", "cosine"}, {"warmup_epochs", adversarial ? 0.0 : 0.5}};
}

}  // namespace

VisionOptions vision_options(Scale scale, VisionData data) {
  VisionOptions options;
  options.data = data;
  options.test_images = by_scale<int64_t>(scale, 16, 200, 1000);
  if (is_cnn(options)) {
    options.epochs = by_scale<int64_t>(scale, 1, 3, 6);
    options.batch = by_scale<int64_t>(scale, 32, 250, 500);
    options.lr = 0.24, options.adversarial_lr = 0.06;
    if (scale == Scale::small) options.adversarial_steps = 4, options.adversarial_updates = 60;
    if (scale == Scale::smoke) options.widths = {8, 8};
  } else if (scale == Scale::small) {
    options.width = 64, options.depth = 4, options.heads = 4, options.patch = 8;
    options.epochs = 4, options.adversarial_updates = 100;
  } else if (scale == Scale::smoke) {
    options.width = 16, options.depth = 2, options.heads = 2, options.patch = 8;
    options.epochs = 1, options.batch = 32;
  }
  if (scale != Scale::paper) options.adversarial_epochs = 1;
  if (scale == Scale::smoke) options.experts = 4, options.train_images = 64, options.adversarial_steps = 2;
  return options;
}

void VisionOptions::declare(OptionSet& set) {
  if (is_cnn(*this)) {
    set.integers("widths", &widths, {1, 4096}, "channels of the CNN's groups of two convolutions");
  } else {
    set.integer("width", &width, {1, 4096}, "width of the transformers");
    set.integer("depth", &depth, {1, 100}, "blocks; every second one has an MoE layer");
    set.integer("heads", &heads, {1, 256}, "attention heads");
    set.integer("patch", &patch, {1, 64}, "patch size in pixels");
  }
  set.integer("experts", &experts, {2, 1024}, "experts of the MoE model");
  set.integer("k", &k, {1, 1024}, "how many of them each token has");
  set.real("capacity", &capacity, {0, 1000},
           "capacity factor; 0: no limit, so that images do not influence each other");
  set.integer("train_images", &train_images, {0, 100000000}, "training images; 0: all");
  set.integer("test_images", &test_images, {1, 100000}, "images that are attacked, as many of each class");
  set.integer("epochs", &epochs, {1, 100000}, "epochs of the usual training");
  set.integer("adversarial_epochs", &adversarial_epochs, {1, 100000}, "further epochs on attacked images");
  set.integer("adversarial_updates", &adversarial_updates, {0, 100000000}, "maximum of steps on these; 0: no limit");
  set.integer("batch", &batch, {1, 100000}, "images per step");
  set.real("lr", &lr, {0, 1000}, "learning rate of AdamW, or of Muon for CNNs");
  set.real("adversarial_lr", &adversarial_lr, {0, 1000}, "learning rate of the adversarial fine-tuning");
  set.integer("adversarial_steps", &adversarial_steps, {1, 1000}, "steps of the attack in training");
  set.real("adversarial_epsilon", &adversarial_epsilon, {0, 255}, "epsilon in training, in 255ths");
}

DataChoice vision_choice(VisionData data) { return vision_set(data).choice; }
const char* vision_needs(VisionData data) { return vision_set(data).needs; }
const char* vision_suffix(VisionData data) { return vision_set(data).suffix; }

std::string vision_description(const VisionOptions& options) {
  if (!is_cnn(options))
    return cat("a V-MoE and ViTs of ", options.depth, " blocks and width ", options.width,
               ". The V-MoE has every second MLP routed to k = ", options.k, " experts of each token; \"", kWideModel,
               "\" has MLPs ", shown_number(0.5 * static_cast<double>(options.k + 1)), " times as wide");
  return cat("CNNs with a residual MLP on the last map. The MoE model routes each position of that map to k = ",
             options.k, " experts; \"", kWideModel, "\" has an MLP ", options.k, " times as wide");
}

Json vision_sections(const VisionModel& model, const VisionOptions& options, const FigureRun& run, int64_t seed,
                     const std::string& weights) {
  Json sections;
  sections["run"] = {{"seed", seed}};
  sections["data"] = data_section(options, run);
  sections["transforms"] = transforms(options.data);
  sections["loader"] = {{"batch", options.batch}};
  if (is_cnn(options))
    add_cnn(sections, model, options);
  else
    add_transformer(sections, model, options);
  add_training(sections, model, options);
  if (model.training != kAdversarial) return sections;
  sections["train"]["init_from"] = weights;
  sections["train"]["max_steps"] = options.adversarial_updates;
  sections["algorithm"] = {
      {"name", "pgd_training"}, {"steps", options.adversarial_steps}, {"epsilon", options.adversarial_epsilon / 255}};
  return sections;
}

VisionCost vision_cost(const VisionModel& model, const VisionOptions& options, const FigureRun& run) {
  const Json resolved = resolved_model(vision_sections(model, options, run, 0), "figure");
  const VisionSet& set = vision_set(options.data);
  const ImageShape shape{set.channels, kVisionSide, kVisionSide, run.data.empty() ? 10 : set.classes};
  const Cost cost = total(model_cost(resolved, shape));
  return {2 * static_cast<double>(cost.multiply_adds) / 1e9, static_cast<double>(cost.parameters) / 1e6};
}

std::vector<std::string> moe_layers(const VisionOptions& options) {
  if (is_cnn(options)) return {"moe.mlp"};
  std::vector<std::string> layers;
  for (int64_t block = 1; block < options.depth; block += 2) layers.push_back(cat("blocks.", block, ".mlp"));
  return layers;
}

}  // namespace sparsight::robust_moe
