// Weights of other libraries under the names of this one: timm's, or torchvision's where timm has others
// (io/names/namings.h), and back.
#pragma once

#include <string>

#include "sparsight/io/safetensors.h"

namespace sparsight {

// Recognises the library by its names and renames all tensors; ours are unchanged, and so are unknown ones. Queries,
// keys and values of transformers become one tensor, which raises Error where one is missing or of another shape. The
// authors' DINOv2 weights lose `mask_token`, and those with registers have the class token's position added to the
// class token, as timm converts them.
NamedTensors with_our_names(NamedTensors tensors);

// Our tensors under the names of a library, one of naming_libraries(). Raises UsageError for an unknown library and for
// one that has no such model, Error for a tensor that its model does not have, as an MoE layer's.
NamedTensors with_names_of(const std::string& library, const NamedTensors& tensors);

// The tensors of a weights file under our names: safetensors (a checkpoint's weights without its training state) or a
// PyTorch state dict, recognised by content; or those of several files (io/sharded_weights.h), by a folder with their
// index. Raises Error for any other file.
NamedTensors read_weights(const std::string& path);

}  // namespace sparsight
