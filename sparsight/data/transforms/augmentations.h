// The sets of operations that RandAugment samples from.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/transforms/warp.h"

namespace sparsight {

struct Augmentation {
  const char* name;
  // image: [C,H,W] uint8. strength: -1..1 of the operation's range, where the sign is its direction; one without
  // direction uses the absolute value, or neither.
  at::Tensor (*apply)(const at::Tensor& image, double strength, const BorderFill& fill);
};

// torchvision's 14 with its ranges: "identity", "shear_x", ... Differs from it: shear is about the image's centre.
const std::vector<Augmentation>& torchvision_augmentations();

// The 15 of DeiT (timm's "increasing" set), which all change more with a higher strength: "autocontrast", "equalize",
// "invert", ... Geometry interpolates bicubically. On bytes they are timm's on Pillow's images.
const std::vector<Augmentation>& increasing_augmentations();

}  // namespace sparsight
