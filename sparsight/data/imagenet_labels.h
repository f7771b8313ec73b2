// The names of ImageNet's classes (ILSVRC 2012), in the order of the outputs of models trained on it.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// 1,000 different names, those of torchvision.
const std::vector<std::string>& imagenet1k_labels();

}  // namespace sparsight
