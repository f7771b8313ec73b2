// Starts a model from the weights of a file.
#pragma once

#include <string>

#include "sparsight/models/upcycle.h"

namespace sparsight {

// path: .safetensors (including checkpoints) or a PyTorch state dict (.pt, .pth). torchvision's names are understood.
// Logs which tensors were adapted, kept fresh or unused. A tensor of the file that the model does not have, and one of
// the model that the file does not have in a fitting shape, is an Error, or a warning with `allow_missing`; except for
// a head, which may be for other classes, and the routers of upcycled layers. Returns whether experts were upcycled.
// Experts of a model with MoE layers start as copies of a dense file's MLPs. The model keeps its own pixel statistics,
// with a warning if those of the file differ. Raises Error if the file cannot be read or nothing matches.
bool load_initial_weights(ImageModel& model, const std::string& path, const UpcycleOptions& upcycle = {},
                          bool allow_missing = false);

}  // namespace sparsight
