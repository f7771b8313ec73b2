#include "sparsight/papers/gmoe/figures/small_models.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::gmoe {

void SmallModels::declare(OptionSet& set) {
  set.integers("cnn_widths", &cnn_widths, {1, 4096}, "channels of the stages of the CNN");
  set.integer("width", &width, {1, 4096}, "width of the transformers");
  set.integer("depth", &depth, {1, 100}, "blocks of the transformers");
  set.integer("heads", &heads, {1, 256}, "attention heads");
  set.integer("patch", &patch, {1, 256}, "patch size in pixels");
  set.integer("experts", &experts, {1, 4096}, "experts of each MoE layer");
  set.integer("epochs", &epochs, {1, 100000}, "epochs");
  set.integer("batch", &batch, {1, 100000}, "images per step");
  set.real("lr", &lr, {0, 1000}, "learning rate of AdamW");
  set.choice("precision", &precision, {"fp32", "bf16", "auto"}, "of training; auto: bf16 where the CPU has it");
}

Json small_model_sections(const std::string& name, const SmallModels& options) {
  Json sections;
  sections["loader"] = {{"batch", options.batch}};
  sections["train"] = {
      {"epochs", options.epochs}, {"keep", "last"}, {"clip_norm", 1}, {"precision", options.precision}};
  sections["optimizer"] = {{"name", "adamw"}, {"lr", options.lr}};
  sections["schedule"] = {{"name", "cosine"}, {"warmup_epochs", 0.5}};
  if (name == kSmallCnn) {
    sections["model"] = {{"name", "cnn"}, {"widths", options.cnn_widths}, {"blocks", 2}};
    return sections;
  }
  sections["model"] = {{"name", "vit"},
                       {"width", options.width},
                       {"depth", options.depth},
                       {"heads", options.heads},
                       {"patch", options.patch}};
  if (name == kSmallVit) return sections;
  SPARSIGHT_CHECK(name == kSmallMoe);
  if (options.depth < 4)
    fail_usage("depth ", options.depth, " has no two even blocks before the last; choose at least 4");
  sections["moe"] = {{"blocks", {-4, -2}}, {"experts", options.experts}};
  sections["router"] = {{"name", "cosine"}};
  sections["experts"] = {{"dropout", 0.1}};
  sections["capacity"] = {
      {"factor", 1.5}, {"eval_factor", 0}, {"rounding", "floor_per_choice"}, {"priority", "max_gate"}};
  return sections;
}

}  // namespace sparsight::gmoe
