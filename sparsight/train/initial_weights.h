// Starts a model from the weights of a file.
#pragma once

#include <string>

#include "sparsight/models/image_model.h"

namespace sparsight {

// path: .safetensors (a checkpoint, too) or a PyTorch state dict (.pt, .pth). torchvision's names are understood. Logs
// which tensors were adapted, kept fresh or unused. Raises Error where the file cannot be read or nothing fits.
void load_initial_weights(ImageModel& model, const std::string& path);

}  // namespace sparsight
