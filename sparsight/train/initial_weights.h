// Starts a model from the weights of a file.
#pragma once

#include <string>

#include "sparsight/models/upcycle.h"

namespace sparsight {

// path: .safetensors (a checkpoint, too) or a PyTorch state dict (.pt, .pth). torchvision's names are understood. Logs
// which tensors were adapted, kept fresh or unused. Experts of a model with MoE layers start as copies of a dense
// file's MLPs. What the file's model normalised images by does not count: the model's own statistics stay, with a
// warning where they differ. Raises Error where the file cannot be read or nothing fits.
void load_initial_weights(ImageModel& model, const std::string& path, const UpcycleOptions& upcycle = {});

}  // namespace sparsight
