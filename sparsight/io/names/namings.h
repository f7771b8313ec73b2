// The namings of all libraries and families, in one readable list each.
#pragma once

#include <string>
#include <vector>

#include "sparsight/io/names/weight_naming.h"

namespace sparsight {

// The libraries whose names can be written, in the order of help. "huggingface" has the names of its files, which
// from_pretrained() of every version of transformers reads; "transformers-5" those of state_dict() in version 5.
const std::vector<std::string>& naming_libraries();

// Every naming; of those of one library the first that fits counts.
const std::vector<WeightNaming>& weight_namings();

// Those of one family.
std::vector<WeightNaming> vit_namings();
std::vector<WeightNaming> resnet_namings();
std::vector<WeightNaming> mobilenet_namings();
std::vector<WeightNaming> convnext_namings();
std::vector<WeightNaming> mnist_cnn_namings();

}  // namespace sparsight
