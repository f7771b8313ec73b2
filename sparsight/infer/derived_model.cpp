#include "sparsight/infer/derived_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/models/mobilenet.h"
#include "sparsight/models/vit.h"

namespace sparsight {
namespace {

constexpr int64_t kHeadWidth = 64;                         // of an attention head in nearly all vision transformers
constexpr int64_t kSo400mWidth = 1152, kSo400mHeads = 16;  // SigLIP's shape-optimised size, of heads of 72
constexpr int64_t kUsualSide = 224, kSmallSide = 32;
constexpr double kCropShare = 0.875;  // of the resized image that the centre crop keeps
constexpr double kClipEpsilon = 1e-5;
constexpr double kAnyLayerScale = 1e-5;  // the file's values replace it

PixelStatistics imagenet_pixels() { return {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}; }
PixelStatistics clip_pixels() { return {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}}; }
PixelStatistics half_pixels() { return {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}}; }

// The tensors of a file by name.
class Tensors {
 public:
  Tensors(const NamedTensors& tensors, std::string path) : path_(std::move(path)) {
    for (const auto& [name, tensor] : tensors) by_name_.emplace(name, tensor);
  }
  bool has(const std::string& name) const { return by_name_.contains(name); }
  // Raises UsageError unless there is one of `dims` axes.
  const at::Tensor& named(const std::string& name, int64_t dims) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) fail_derivation("it has no ", name);
    if (found->second.dim() != dims) fail_derivation(name, " has ", found->second.dim(), " axes, expected ", dims);
    return found->second;
  }
  // How many of PREFIX0SUFFIX, PREFIX1SUFFIX ... there are.
  int64_t count(const std::string& prefix, const std::string& suffix) const {
    int64_t n = 0;
    while (has(cat(prefix, n, suffix))) ++n;
    return n;
  }
  std::optional<std::string> with_part(const std::string& part) const {
    for (const auto& [name, tensor] : by_name_)
      if (name.find(part) != std::string::npos) return name;
    return std::nullopt;
  }
  std::string first() const { return by_name_.begin()->first; }
  template <class... Parts>
  [[noreturn]] void fail_derivation(const Parts&... parts) const {
    fail_usage(printable(path_),
               " has weights alone, and no model follows from their names and shapes: ", printable(cat(parts...)),
               "; give --config with the [model] that they are of");
  }

 private:
  std::string path_;
  std::map<std::string, at::Tensor> by_name_;
};

Json crop_transforms(int64_t side, const char* filter) {
  const int64_t resized = side <= 2 * kSmallSide ? side : std::llround(static_cast<double>(side) / kCropShare);
  return Json::array({{{"op", "resize"}, {"size", Json::array({resized})}, {"filter", filter}},
                      {{"op", "center_crop"}, {"size", side}}});
}

std::optional<int64_t> square_root(int64_t count) {
  const int64_t root = count > 0 ? std::llround(std::sqrt(static_cast<double>(count))) : 0;
  return root > 0 && root * root == count ? std::optional(root) : std::nullopt;
}

// How many patches a side has, and whether the class and register tokens have positions too.
struct Grid {
  int64_t side = 0;
  bool embeds_prefix = true;
};

Grid find_grid(const Tensors& tensors, int64_t prefix) {
  const int64_t positions = tensors.named("pos_embed", 3).size(1);
  const auto patches = square_root(positions), without = square_root(positions - prefix);
  if (prefix > 1 && patches) return {*patches, false};  // as all published models with registers
  if (without) return {*without, true};
  if (patches) return {*patches, false};
  tensors.fail_derivation("pos_embed has ", positions, " positions, which are no square of patches");
}

// How many attention heads a vision transformer has: the norms of queries tell it, else what is published; 0: unknown.
int64_t find_heads(const Tensors& tensors, int64_t width, int64_t depth) {
  if (const std::string norm = "blocks.0.attn.q_norm.weight"; tensors.has(norm)) {
    const int64_t size = tensors.named(norm, 1).size(0);
    if (size == 0 || width % size != 0)
      tensors.fail_derivation(norm, " has ", size, " numbers, which do not divide the width of ", width);
    return width / size;
  }
  if (const int64_t heads = vit_heads(width, depth); heads > 0) return heads;
  if (width == kSo400mWidth) return kSo400mHeads;
  return width % kHeadWidth == 0 ? width / kHeadWidth : 0;
}

DerivedModel derive_vit(const Tensors& tensors) {
  if (const auto experts = tensors.with_part(".experts."))
    tensors.fail_derivation(*experts, " is of an MoE layer, whose router has settings that no shape tells");
  const at::Tensor &patch = tensors.named("patch_embed.proj.weight", 4),
                   &fc1 = tensors.named("blocks.0.mlp.fc1.weight", 2);
  const int64_t width = patch.size(0), depth = tensors.count("blocks.", ".norm1.weight");
  const bool class_token = tensors.has("cls_token"), registers = tensors.has("reg_token"),
             pre_norm = tensors.has("norm_pre.weight");
  const bool distilled = tensors.has("dist_token");
  const int64_t prefix =
      (class_token ? 1 : 0) + (distilled ? 1 : 0) + (registers ? tensors.named("reg_token", 3).size(1) : 0);
  if (width == 0 || patch.size(2) == 0) tensors.fail_derivation("patch_embed.proj.weight is empty");
  const bool map = tensors.has("attn_pool.latent");
  if ((class_token || map) != tensors.has("norm.weight") || (class_token || map) == tensors.has("fc_norm.weight") ||
      (class_token && map))
    tensors.fail_derivation(
        "vit normalises the class token or what attention pools (norm.weight), or without both the mean "
        "(fc_norm.weight)");
  const Grid grid = find_grid(tensors, prefix);
  DerivedModel derived;
  derived.settings = {{"name", "vit"},
                      {"width", width},
                      {"depth", depth},
                      {"patch", patch.size(2)},
                      {"mlp_ratio", static_cast<double>(fc1.size(0)) / static_cast<double>(width)},
                      {"pool", map           ? "map"
                               : class_token ? "class"
                                             : "mean"},
                      {"qkv_bias", tensors.has("blocks.0.attn.qkv.bias")},
                      {"qk_norm", tensors.has("blocks.0.attn.q_norm.weight")},
                      {"distilled", distilled},
                      {"pre_logits", tensors.has("pre_logits.fc.weight")},
                      {"layer_scale", tensors.has("blocks.0.ls1.gamma") ? kAnyLayerScale : 0},
                      {"reg_tokens", registers ? tensors.named("reg_token", 3).size(1) : 0},
                      {"pre_norm", pre_norm},
                      {"no_embed_class", !grid.embeds_prefix}};
  if (pre_norm) derived.settings["norm_eps"] = kClipEpsilon;
  if (const int64_t heads = find_heads(tensors, width, depth); heads > 0) derived.settings["heads"] = heads;
  derived.channels = patch.size(1);
  derived.side = grid.side * patch.size(2);
  derived.eval_transforms = crop_transforms(derived.side, "bicubic");
  derived.pixels = map ? half_pixels() : pre_norm ? clip_pixels() : imagenet_pixels();
  return derived;
}

DerivedModel derive_resnet(const Tensors& tensors) {
  const at::Tensor& stem = tensors.named("conv1.weight", 4);
  const bool bottleneck = tensors.has("layer1.0.conv3.weight"), small = stem.size(2) < 7;
  int64_t blocks = 0;
  for (const char* layer : {"layer1.", "layer2.", "layer3.", "layer4."})
    blocks += tensors.count(layer, ".conv1.weight");
  DerivedModel derived;
  derived.settings = {{"name", "resnet"},
                      {"depth", blocks * (bottleneck ? 3 : 2) + 2},  // stem and head are layers too
                      {"base_width", stem.size(0)},
                      {"stem", small ? "cifar" : "imagenet"}};
  derived.channels = stem.size(1);
  derived.side = small ? kSmallSide : kUsualSide;
  derived.eval_transforms = crop_transforms(derived.side, "bilinear");
  derived.pixels = imagenet_pixels();
  return derived;
}

DerivedModel derive_mobilenet(const Tensors& tensors) {
  const at::Tensor& stem = tensors.named("features.0.0.weight", 4);
  const int64_t last_stage = tensors.named("features.18.0.weight", 4).size(1);
  const auto fits = [&](double width) {
    return round_to_eights(32 * width) == stem.size(0) && round_to_eights(320 * width) == last_stage;
  };
  DerivedModel derived;
  for (const double width : {1.0, 0.35, 0.5, 0.75, 1.3, 1.4, 0.25, 2.0})  // published ones
    if (fits(width) && derived.settings.is_null()) derived.settings = {{"name", "mobilenet"}, {"width", width}};
  if (derived.settings.is_null())
    tensors.fail_derivation("a MobileNetV2 with ", stem.size(0), " channels in its stem and ", last_stage,
                            " in its last stage is none of the published widths");
  derived.channels = stem.size(1);
  derived.side = kUsualSide;
  derived.eval_transforms = crop_transforms(derived.side, "bilinear");
  derived.pixels = imagenet_pixels();
  return derived;
}

DerivedModel derive_convnext(const Tensors& tensors) {
  const at::Tensor& stem = tensors.named("stem.0.weight", 4);
  if (const auto experts = tensors.with_part(".experts."))
    tensors.fail_derivation(*experts, " is of an MoE layer, whose router has settings that no shape tells");
  DerivedModel derived;
  Json depths = Json::array(), widths = Json::array();
  for (int64_t i = 0; i < tensors.count("stages.", ".blocks.0.conv_dw.weight"); ++i) {
    depths.push_back(tensors.count(cat("stages.", i, ".blocks."), ".conv_dw.weight"));
    widths.push_back(tensors.named(cat("stages.", i, ".blocks.0.conv_dw.weight"), 4).size(0));
  }
  derived.settings = {{"name", "convnext"},
                      {"depths", depths},
                      {"widths", widths},
                      {"patch", stem.size(2)},
                      {"layer_scale", tensors.has("stages.0.blocks.0.gamma") ? kAnyLayerScale : 0}};
  derived.channels = stem.size(1);
  derived.side = kUsualSide;
  derived.eval_transforms = crop_transforms(derived.side, "bicubic");
  derived.pixels = imagenet_pixels();
  return derived;
}

struct Family {
  const char* model;
  std::array<const char*, 2> names;  // of tensors that only its files have together
  DerivedModel (*derive)(const Tensors& tensors);
};
constexpr Family kFamilies[] = {
    {"vit", {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight"}, derive_vit},
    {"resnet", {"conv1.weight", "layer1.0.conv1.weight"}, derive_resnet},
    {"mobilenet", {"features.0.0.weight", "features.18.0.weight"}, derive_mobilenet},
    {"convnext", {"stem.0.weight", "stages.0.blocks.0.conv_dw.weight"}, derive_convnext},
};

}  // namespace

DerivedModel derive_model(const NamedTensors& named, const std::string& path) {
  SPARSIGHT_CHECK(!named.empty());
  const Tensors tensors(named, path);
  std::string known;
  for (const Family& family : kFamilies) {
    if (std::ranges::all_of(family.names, [&](const char* name) { return tensors.has(name); }))
      return family.derive(tensors);
    known += cat(known.empty() ? "" : ", ", family.model);
  }
  tensors.fail_derivation("those of these models are known: ", known, "; this file begins with ", tensors.first());
}

}  // namespace sparsight
