#include "sparsight/papers/robust_moe/experiments/vision_models.h"

#include <nlohmann/json.hpp>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/error.h"
#include "sparsight/models/model_cost.h"

namespace sparsight::robust_moe {
namespace {

const DataChoice kCifar100{"cifar100", "glyphs for CIFAR-100"};
const DataChoice kMnist{"mnist", "grey glyphs for MNIST"};
constexpr int64_t kVisionSide = 32;  // MNIST's images are resized to that

Json data_section(const VisionOptions& options, VisionData data, const FigureRun& run) {
  const int64_t images = options.train_images;
  const bool grey = data == VisionData::mnist;
  if (run.data.empty())
    return {{"name", "glyphs"},
            {"classes", 10},
            {"super_classes", 0},
            {"side", kVisionSide},
            {"channels", grey ? 1 : 3},
            {"domains", Json::array({"clean"})},
            {"train", images > 0 ? images : 10000},
            {"validation", 1},
            {"test", options.test_images}};
  return {{"name", grey ? "mnist" : "cifar100"},
          {"root", real_folder(vision_choice(data), run)},
          {"validation", 0},
          {"train_limit", images},
          {"test_limit", options.test_images}};
}

Json transforms(VisionData data) {
  const bool grey = data == VisionData::mnist;
  const Json normalize = {{"op", "normalize"}, {"preset", grey ? "mnist" : "cifar100"}};
  Json train = Json::array(), eval = Json::array();
  if (grey) {
    train.push_back({{"op", "resize"}, {"size", {kVisionSide, kVisionSide}}});
    eval = train;
  } else {
    train.push_back({{"op", "random_crop"}, {"size", kVisionSide}, {"padding", 4}});
    train.push_back({{"op", "flip"}});
  }
  train.push_back(normalize);
  eval.push_back(normalize);
  return {{"train", train}, {"eval", eval}};
}

void add_moe(Json& sections, const VisionModel& model, const VisionOptions& options) {
  Json blocks = Json::array();
  for (int64_t block = 1; block < options.depth; block += 2) blocks.push_back(block);
  sections["moe"] = {{"blocks", blocks}, {"experts", model.experts}};
  sections["router"] = {{"name", "softmax_topk"}, {"k", options.k}};
  sections["capacity"] = {{"factor", options.capacity}};
  // The choice of the authors' code: the load loss of two experts can be NaN.
  if (model.experts == 2) sections["losses"] = {{"vmoe_importance", 0}, {"vmoe_load", 0}, {"switch", 0.01}};
}

}  // namespace

void VisionOptions::declare(OptionSet& set) {
  set.integer("width", &width, {1, 4096}, "width of the transformers");
  set.integer("depth", &depth, {1, 100}, "blocks; every second one has an MoE layer");
  set.integer("heads", &heads, {1, 256}, "attention heads");
  set.integer("patch", &patch, {1, 64}, "patch size in pixels");
  set.integer("experts", &experts, {2, 1024}, "experts of the V-MoE");
  set.integer("k", &k, {1, 1024}, "how many of them each token has");
  set.real("capacity", &capacity, {0, 1000},
           "capacity factor; 0: no limit, so that images do not influence each other");
  set.integer("train_images", &train_images, {0, 100000000}, "training images; 0: all");
  set.integer("test_images", &test_images, {1, 100000}, "images that are attacked, as many of each class");
  set.integer("epochs", &epochs, {1, 100000}, "epochs of the usual training");
  set.integer("adversarial_epochs", &adversarial_epochs, {1, 100000}, "further epochs on attacked images");
  set.integer("adversarial_updates", &adversarial_updates, {0, 100000000}, "maximum of steps on these; 0: no limit");
  set.integer("batch", &batch, {1, 100000}, "images per step");
  set.real("lr", &lr, {0, 1000}, "learning rate of AdamW");
  set.real("adversarial_lr", &adversarial_lr, {0, 1000}, "learning rate of the adversarial fine-tuning");
  set.integer("adversarial_steps", &adversarial_steps, {1, 1000}, "steps of the attack in training");
  set.real("adversarial_epsilon", &adversarial_epsilon, {0, 255}, "epsilon in training, in 255ths");
}

DataChoice vision_choice(VisionData data) { return data == VisionData::mnist ? kMnist : kCifar100; }
const char* vision_needs(VisionData data) { return data == VisionData::mnist ? "MNIST" : "CIFAR-100"; }

Json vision_sections(const VisionModel& model, const VisionOptions& options, VisionData data, const FigureRun& run,
                     int64_t seed, const std::string& weights) {
  const bool adversarial = model.training == kAdversarial;
  Json sections;
  sections["run"] = {{"seed", seed}};
  sections["data"] = data_section(options, data, run);
  sections["transforms"] = transforms(data);
  sections["loader"] = {{"batch", options.batch}};
  sections["model"] = {{"name", "vit"},
                       {"width", options.width},
                       {"depth", options.depth},
                       {"heads", options.heads},
                       {"patch", options.patch},
                       // K experts of each token in every second block give all MLPs (K + 1) / 2 times the
                       // multiply-adds.
                       {"mlp_ratio", model.name == kWideVit ? 2 * (options.k + 1) : 4}};
  if (model.name == kVmoe) add_moe(sections, model, options);
  sections["train"] = {
      {"epochs", adversarial ? options.adversarial_epochs : options.epochs}, {"keep", "last"}, {"clip_norm", 1}};
  sections["optimizer"] = {{"name", "adamw"}, {"lr", adversarial ? options.adversarial_lr : options.lr}};
  sections["schedule"] = {{"name", "cosine"}, {"warmup_epochs", adversarial ? 0.0 : 0.5}};
  if (!adversarial) return sections;
  sections["train"]["init_from"] = weights;
  sections["train"]["max_steps"] = options.adversarial_updates;
  sections["algorithm"] = {
      {"name", "pgd_training"}, {"steps", options.adversarial_steps}, {"epsilon", options.adversarial_epsilon / 255}};
  return sections;
}

VisionCost vision_cost(const VisionModel& model, const VisionOptions& options, VisionData data, const FigureRun& run) {
  const Json resolved = resolved_model(vision_sections(model, options, data, run, 0), "figure");
  const bool grey = data == VisionData::mnist;
  const ImageShape shape{grey ? 1 : 3, kVisionSide, kVisionSide, !run.data.empty() && !grey ? 100 : 10};
  const Cost cost = total(model_cost(resolved, shape));
  return {2 * static_cast<double>(cost.multiply_adds) / 1e9, static_cast<double>(cost.parameters) / 1e6};
}

std::vector<std::string> moe_layers(const VisionOptions& options) {
  std::vector<std::string> layers;
  for (int64_t block = 1; block < options.depth; block += 2) layers.push_back(cat("blocks.", block, ".mlp"));
  return layers;
}

}  // namespace sparsight::robust_moe
