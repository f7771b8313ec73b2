// Maps weight names of other libraries to timm's, which this library uses too.
#pragma once

#include <string>

#include "sparsight/io/safetensors.h"

namespace sparsight {

// The timm name of a tensor of torchvision's vision transformer; a name that torchvision does not use is unchanged.
std::string timm_name_of_torchvision(const std::string& name);

// Recognises the library by its names and renames all tensors, those of torchvision, of transformers' ViT and DeiT, of
// DeiT-III and of DINOv2; timm's names are unchanged. Queries, keys and values of transformers become one tensor, which
// raises Error where one is missing or of another shape. The authors' DINOv2 weights lose `mask_token`, and those with
// registers have the class token's position added to the class token, as timm converts them.
NamedTensors with_timm_names(NamedTensors tensors);

// The tensors of a weights file under timm names: safetensors (a checkpoint's weights without its training state) or a
// PyTorch state dict, recognised by content; or those of several files (io/sharded_weights.h), by a folder with their
// index. Raises Error for any other file.
NamedTensors read_weights(const std::string& path);

}  // namespace sparsight
