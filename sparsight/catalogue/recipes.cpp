#include "sparsight/catalogue/recipes.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "sparsight/models/vit.h"

namespace sparsight {
namespace {

// The number at section.key of a configuration; `otherwise` where it has none.
double number_at(const Json& tree, const char* section, const char* key, double otherwise) {
  const Json value = tree.value(section, Json::object()).value(key, Json());
  return value.is_number() && value > 0 ? value.get<double>() : otherwise;
}

bool is_set(const Json& tree, const char* section, const char* key) {
  return tree.value(section, Json::object()).contains(key);
}

const Json kRandomCrop = {{"op", "random_resized_crop"},
                          {"size", 0},
                          {"scale", {0.08, 1.0}},
                          {"ratio", {0.75, 4.0 / 3}},
                          {"filter", "bicubic"}};
const Json kFlip = {{"op", "flip"}, {"probability", 0.5}};

// timm's "rand-m9-mstd0.5-inc1"; the fill is the mean of ImageNet's pixels.
const Json kRandAugment = {
    {"op", "rand_augment"}, {"operations", "increasing"},   {"ops", 2}, {"magnitude", 9}, {"sigma", 0.5},
    {"probability", 0.5},   {"fill_color", {124, 116, 104}}};
const Json kErase = {{"op", "random_erasing"},
                     {"probability", 0.25},
                     {"scale", {0.02, 1.0 / 3}},
                     {"ratio", {0.3, 1 / 0.3}},
                     {"noise", true}};

Json evaluation_with(const Json& normalize) {
  return Json::array({{{"op", "resize"}, {"size", Json::array({0})}, {"filter", "bicubic"}},
                      {{"op", "center_crop"}, {"size", 0}},
                      normalize});
}

Json adamw(double rate, double decay) {
  return {{"name", "adamw"}, {"lr", rate}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", decay}};
}

// Biases (those of experts are b1, b2, ...), norms, position embedding and tokens, by part of the name.
const Json kNoDecay = {"bias", "experts.b", "norm", "pos_embed", "cls_token", "dist_token", "reg_token", "gamma"};

Json deit_recipe(const Json& tree) {
  constexpr double kBatch = 1024, kRatePer512 = 5e-4, kFirstRate = 1e-6, kLastRate = 1e-5;
  const double batch = number_at(tree, "loader", "batch", kBatch) * number_at(tree, "train", "accumulate", 1);
  const double preset_rate = kRatePer512 * batch / 512, rate = number_at(tree, "optimizer", "lr", preset_rate);
  const Json normalize{{"op", "normalize"}, {"preset", "imagenet"}};
  return {{"train", {{"epochs", 300}, {"clip_norm", 0.0}, {"ema_decay", 0.99996}, {"no_decay", kNoDecay}}},
          {"loader", {{"batch", static_cast<int64_t>(kBatch)}, {"sampling", "shuffle"}, {"views", 3}}},
          {"transforms",
           {{"train", Json::array({kRandomCrop, kFlip, kRandAugment, normalize, kErase})},
            {"eval", evaluation_with(normalize)},
            {"label_smoothing", 0.1},
            {"mixup", 0.8},
            {"cutmix", 1.0}}},
          {"model", {{"dropout", 0.0}, {"hidden_dropout", 0.0}, {"drop_path", 0.1}}},
          {"experts", {{"dropout", 0.0}}},
          {"optimizer", adamw(preset_rate, 0.05)},
          {"schedule",
           {{"name", "cosine"},
            {"warmup_epochs", 5.0},
            {"warmup_from", std::min(1.0, kFirstRate / rate)},
            {"final_factor", std::min(1.0, kLastRate / rate)},
            {"decay_from", "start"},
            {"per_epoch", true}}}};
}

Json vit_recipe(double rate, double decay, double dropout) {
  const Json normalize{{"op", "normalize"}, {"preset", "half"}};  // pixels from -1 to 1
  return {{"train", {{"epochs", 300}, {"clip_norm", 1.0}, {"ema_decay", 0.0}, {"no_decay", kNoDecay}}},
          {"loader", {{"batch", 4096}, {"sampling", "shuffle"}, {"views", 1}}},
          {"transforms",
           {{"train", Json::array({kRandomCrop, kFlip, normalize})},
            {"eval", evaluation_with(normalize)},
            {"label_smoothing", 0.0},
            {"mixup", 0.0},
            {"cutmix", 0.0}}},
          {"model", {{"dropout", dropout}, {"hidden_dropout", dropout}, {"drop_path", 0.0}}},
          {"experts", {{"dropout", dropout}}},
          {"optimizer", adamw(rate, decay)},
          {"schedule",
           {{"name", "cosine"},
            {"warmup_steps", 10000},
            {"warmup_share", 0.107},
            {"final_factor", 0.0},
            {"decay_from", "warmup"},
            {"per_epoch", false}}}};
}

Json standard_vit_recipe(const Json&) { return vit_recipe(3e-3, 0.3, 0.1); }

Json mobile_vmoe_recipe(const Json& tree) {
  constexpr int64_t kNarrowest = 192;  // of the widths with `deit`
  const Json size = tree.value("model", Json::object()).value("size", Json());
  const auto custom = static_cast<int64_t>(number_at(tree, "model", "width", VitOptions().width));
  const int64_t width = size.is_string() ? vit_width(size.get<std::string>(), custom) : custom;
  return width >= kNarrowest ? deit_recipe(tree) : standard_vit_recipe(tree);
}

struct Recipe {
  const char* name;
  Json (*settings)(const Json& tree);
};

const std::array kRecipes{Recipe{"none", [](const Json&) { return Json::object(); }}, Recipe{"deit", deit_recipe},
                          Recipe{"vit", standard_vit_recipe},
                          Recipe{"vit_light", [](const Json&) { return vit_recipe(1e-3, 0.1, 0); }},
                          Recipe{"mobile_vmoe", mobile_vmoe_recipe}};

}  // namespace

const std::vector<std::string>& recipe_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Recipe& recipe : kRecipes) all.emplace_back(recipe.name);
    return all;
  }();
  return names;
}

Preset recipe_preset(const Json& tree) {
  const Json name = tree.value("train", Json::object()).value("recipe", Json());
  const auto recipe = std::ranges::find_if(kRecipes, [&](const Recipe& known) { return name == known.name; });
  if (recipe == kRecipes.end()) return {};
  Preset preset{"recipe " + name.get<std::string>(), recipe->settings(tree)};
  if (preset.settings.empty()) return {};
  // The other way to set the length of the warm-up replaces that of the recipe.
  if (is_set(tree, "schedule", "warmup_steps")) preset.settings["schedule"].erase("warmup_epochs");
  if (is_set(tree, "schedule", "warmup_epochs")) preset.settings["schedule"].erase("warmup_steps");
  return preset;
}

}  // namespace sparsight
