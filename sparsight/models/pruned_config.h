// The configuration of a model whose layers have lost experts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// experts: those of each MoE layer, by its path ("blocks.3.mlp"). blocks: how many blocks the model has, from which
// negative numbers in moe.blocks count. As many in all layers become moe.experts; else each layer gets an entry of
// moe.layer for its block alone, 3 of "blocks.3.mlp", with what its earlier entry says. Raises Error where layers that
// are left with different numbers have other paths, as those of ResNets and ConvNeXt have.
Json config_with_experts(Json config, const std::map<std::string, int64_t>& experts, int64_t blocks);

// How many blocks those paths of modules have that begin as `layer` does: one more than the largest number in the place
// of the first number of `layer`; 0 for a path without a number. config_with_experts() takes the largest over layers.
int64_t count_blocks(const std::string& layer, const std::vector<std::string>& modules);

}  // namespace sparsight
