#include "sparsight/io/weight_names.h"

#include <algorithm>

#include "sparsight/io/checkpoint.h"
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
  const size_t dot = name.find('.', kLayer.size());
  if (dot == std::string::npos) return name;
  return "blocks." + name.substr(kLayer.size(), dot - kLayer.size()) + "." + renamed(name.substr(dot + 1), kInLayer);
}

NamedTensors with_timm_names(NamedTensors tensors) {
  const bool torchvision = tensor_named(tensors, "encoder.pos_embedding").defined();
  for (auto& entry : tensors)
    entry.first = torchvision ? timm_name_of_torchvision(entry.first) : with_layer_scale_name(entry.first);
  return tensor_named(tensors, "mask_token").defined() ? with_timm_names_of_dinov2(std::move(tensors)) : tensors;
}

NamedTensors read_weights(const std::string& path) {
  if (is_torch_pickle(path)) return with_timm_names(read_torch_pickle(path));
  const auto wanted = [](const std::string& name) { return !is_training_name(name); };
  return with_timm_names(read_safetensors(path, wanted).tensors);
}

}  // namespace sparsight
