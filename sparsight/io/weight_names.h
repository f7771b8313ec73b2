// Names of weights in other libraries' files, mapped to timm's, which are this library's own.
#pragma once

#include <string>

#include "sparsight/io/safetensors.h"

namespace sparsight {

// The timm name of a vision transformer's tensor in torchvision; a name that torchvision does not use stays as it is.
std::string timm_name_of_torchvision(const std::string& name);

// Recognises the library by its names and renames all tensors; those with timm's names stay as they are.
NamedTensors with_timm_names(NamedTensors tensors);

// The tensors of a weights file with timm names: safetensors (a checkpoint's weights without its training state) or a
// PyTorch state dict, whichever the file holds. Raises Error for any other file.
NamedTensors read_weights(const std::string& path);

}  // namespace sparsight
