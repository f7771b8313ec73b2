#include "sparsight/io/weight_names.h"

#include <algorithm>

#include "sparsight/io/atomic_file.h"
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

}  // namespace

std::string timm_name_of_torchvision(const std::string& name) {
  if (!starts_with(name, kLayer)) return renamed(name, kWholeModel);
  const size_t dot = name.find('.', kLayer.size());
  if (dot == std::string::npos) return name;
  return "blocks." + name.substr(kLayer.size(), dot - kLayer.size()) + "." + renamed(name.substr(dot + 1), kInLayer);
}

NamedTensors with_timm_names(NamedTensors tensors) {
  const bool torchvision = std::any_of(tensors.begin(), tensors.end(),
                                       [](const auto& entry) { return entry.first == "encoder.pos_embedding"; });
  if (torchvision)
    for (auto& entry : tensors) entry.first = timm_name_of_torchvision(entry.first);
  return tensors;
}

NamedTensors read_weights(const std::string& path) {
  char magic[2] = {};
  const Descriptor file = open_for_reading(path);
  read_all_at(file.get(), magic, sizeof magic, 0, path);
  const std::string_view start(magic, sizeof magic);
  if (start == "PK" || start == "\x80\x02") return with_timm_names(read_torch_pickle(path));
  const auto wanted = [](const std::string& name) { return !is_training_name(name); };
  return with_timm_names(read_safetensors(path, wanted).tensors);
}

}  // namespace sparsight
