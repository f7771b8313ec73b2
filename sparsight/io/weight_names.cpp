#include "sparsight/io/weight_names.h"

#include <algorithm>
#include <map>
#include <optional>

#include <ATen/ops/cat.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/sharded_weights.h"
#include "sparsight/io/torch_pickle.h"

namespace sparsight {
namespace {

struct Renaming {
  std::string from, to;
};

// torchvision.models.vision_transformer (0.12 and later); in_proj holds q, k and v in this order, as timm's qkv does.
const Renaming kWholeModel[] = {
    {"class_token", "cls_token"},
    {"encoder.pos_embedding", "pos_embed"},
    {"conv_proj.", "patch_embed.proj."},
    {"encoder.ln.", "norm."},
    {"heads.head.", "head."},
};
const std::string kLayer = "encoder.layers.encoder_layer_";
const Renaming kInLayer[] = {
    {"ln_1.", "norm1."},
    {"ln_2.", "norm2."},
    {"self_attention.in_proj_", "attn.qkv."},
    {"self_attention.out_proj.", "attn.proj."},
    {"mlp.linear_1.", "mlp.fc1."},
    {"mlp.linear_2.", "mlp.fc2."},
    {"mlp.0.", "mlp.fc1."},
    {"mlp.3.", "mlp.fc2."},
};

// transformers' ViTForImageClassification and DeiTForImageClassification, without the first word of their names.
const Renaming kTransformersModel[] = {
    {"embeddings.cls_token", "cls_token"},
    {"embeddings.position_embeddings", "pos_embed"},
    {"embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"layernorm.", "norm."},
    {"classifier.", "head."},
};
const std::string kTransformersLayer = "encoder.layer.";
const Renaming kInTransformersLayer[] = {
    {"layernorm_before.", "norm1."},     {"layernorm_after.", "norm2."}, {"attention.output.dense.", "attn.proj."},
    {"intermediate.dense.", "mlp.fc1."}, {"output.dense.", "mlp.fc2."},
};
const std::string kAttention = "attention.attention.";

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

template <size_t N>
std::string renamed(const std::string& name, const Renaming (&table)[N]) {
  for (const auto& [from, to] : table)
    if (starts_with(name, from)) return to + name.substr(from.size());
  return name;
}

at::Tensor tensor_named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  return {};
}

// The layer and the rest of a name that begins with `start`: of "encoder.layer.0.norm1.weight" "0" and "norm1.weight".
// No value for other names.
std::optional<std::pair<std::string, std::string>> layer_and_rest(const std::string& name, const std::string& start) {
  const size_t dot = starts_with(name, start) ? name.find('.', start.size()) : std::string::npos;
  if (dot == std::string::npos) return std::nullopt;
  return std::pair{name.substr(start.size(), dot - start.size()), name.substr(dot + 1)};
}

// The first word of transformers' names, "vit." or "deit."; no value for files of others.
std::optional<std::string> transformers_prefix(const NamedTensors& tensors) {
  for (const std::string prefix : {"vit.", "deit."})
    if (tensor_named(tensors, prefix + "embeddings.position_embeddings").defined()) return prefix;
  return std::nullopt;
}

// There queries, keys and values have weights of their own, which become those of one projection.
NamedTensors with_timm_names_of_transformers(const NamedTensors& tensors, const std::string& prefix) {
  NamedTensors timm;
  std::map<std::string, std::map<std::string, at::Tensor>> projections;  // by timm name: "query", "key", "value"
  for (const auto& [full, tensor] : tensors) {
    const std::string name = starts_with(full, prefix) ? full.substr(prefix.size()) : full;
    const auto layer = layer_and_rest(name, kTransformersLayer);
    if (!layer) {
      timm.emplace_back(renamed(name, kTransformersModel), tensor);
    } else if (const auto projection = layer_and_rest(layer->second, kAttention)) {
      projections["blocks." + layer->first + ".attn.qkv." + projection->second][projection->first] = tensor;
    } else {
      timm.emplace_back("blocks." + layer->first + "." + renamed(layer->second, kInTransformersLayer), tensor);
    }
  }
  for (const auto& [name, parts] : projections) {
    std::vector<at::Tensor> all;
    for (const char* part : {"query", "key", "value"})
      if (parts.contains(part) && parts.at(part).dim() > 0) all.push_back(parts.at(part));
    const auto fits = [&](const at::Tensor& part) { return part.sizes() == all[0].sizes(); };
    if (all.size() != 3 || parts.size() != 3 || !std::ranges::all_of(all, fits))
      fail(printable(name), " needs query, key and value of one shape");
    timm.emplace_back(name, at::cat(all));
  }
  return timm;
}

// The authors' weights of DINOv2 have a token for masked patches, which only training reads, and with registers a
// position of the class token, which timm adds to that token.
NamedTensors with_timm_names_of_dinov2(NamedTensors tensors) {
  std::erase_if(tensors, [](const auto& entry) { return entry.first == "mask_token"; });
  const at::Tensor positions = tensor_named(tensors, "pos_embed");
  const bool registers = tensor_named(tensors, "register_tokens").defined();
  if (!registers || !positions.defined() || positions.dim() != 3 || positions.size(1) < 2) return tensors;
  for (auto& [name, tensor] : tensors) {
    if (name == "register_tokens") name = "reg_token";
    if (name == "cls_token" && tensor.dim() == 3 && tensor.size(2) == positions.size(2))
      tensor = tensor.add(positions.slice(1, 0, 1));
    if (name == "pos_embed") tensor = positions.slice(1, 1).contiguous();
  }
  return tensors;
}

// "blocks.0.gamma_1" of DeiT-III's authors is "blocks.0.ls1.gamma".
std::string with_layer_scale_name(const std::string& name) {
  const size_t at = name.rfind(".gamma_");
  if (at == std::string::npos || at + 8 != name.size()) return name;
  return name.substr(0, at) + ".ls" + name.back() + ".gamma";
}

}  // namespace

std::string timm_name_of_torchvision(const std::string& name) {
  if (!starts_with(name, kLayer)) return renamed(name, kWholeModel);
  const auto layer = layer_and_rest(name, kLayer);
  return layer ? "blocks." + layer->first + "." + renamed(layer->second, kInLayer) : name;
}

NamedTensors with_timm_names(NamedTensors tensors) {
  if (const auto prefix = transformers_prefix(tensors)) return with_timm_names_of_transformers(tensors, *prefix);
  const bool torchvision = tensor_named(tensors, "encoder.pos_embedding").defined();
  for (auto& entry : tensors)
    entry.first = torchvision ? timm_name_of_torchvision(entry.first) : with_layer_scale_name(entry.first);
  return tensor_named(tensors, "mask_token").defined() ? with_timm_names_of_dinov2(std::move(tensors)) : tensors;
}

NamedTensors read_weights(const std::string& path) {
  const auto wanted = [](const std::string& name) { return !is_training_name(name); };
  if (is_sharded(path)) return with_timm_names(ShardedWeights(path).read_all(wanted).tensors);
  if (is_torch_pickle(path)) return with_timm_names(read_torch_pickle(path));
  return with_timm_names(read_safetensors(path, wanted).tensors);
}

}  // namespace sparsight
