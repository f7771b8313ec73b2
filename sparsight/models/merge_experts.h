// The mathematics of merging experts: which experts are alike, which hidden units of two experts correspond, and the
// weighted mean of experts whose units have been put into the same order. Aligned means weighted by usage are those of
// Li et al. 2024, "Merge, Then Compress: Demystify Efficient SMoE with Hints from Its Routing Policy"; units are
// matched by weights as in Ainsworth et al. 2023, "Git Re-Basin: Merging Models modulo Permutation Symmetries",
// algorithm 1. Letters: moe/axes.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/moe/expert_removal.h"

namespace sparsight {

// outputs: [E,T,O], of each expert for the same T tokens. Returns [E,E] fp64: the cosine of the outputs of two experts
// over all tokens; 0 with an expert whose outputs are all 0.
at::Tensor output_similarity(const at::Tensor& outputs);

// similarity: [E,E]. Returns [E]: the expert itself where `kept`, else the kept one that is most similar to it, the
// first of equals. At least one is kept.
std::vector<int64_t> nearest_kept(const at::Tensor& similarity, const std::vector<bool>& kept);

// The tensors of one expert, or of all experts of a layer: [...] or [E,...] by name.
using ExpertParameters = std::map<std::string, at::Tensor>;

// For each hidden layer [F] int64: unit order[u] becomes unit u.
using UnitOrder = std::vector<at::Tensor>;

// reference, other: [F,X], the weights of each unit. Returns [F] int64, the order of the units of `other` for which the
// sum of inner products with those of `reference` is largest, up to the tolerance of balanced_assignment().
at::Tensor match_units(const at::Tensor& reference, const at::Tensor& other);

// Puts the units of one expert's tensor `name` into the order. Tensors without hidden units stay as they are.
at::Tensor reorder_units(const at::Tensor& tensor, const std::string& name, const std::vector<HiddenUnits>& hidden,
                         const UnitOrder& order);

// The order of the units of expert `other` that fits `reference` best. all: [E,...] by name. With several hidden layers
// one is matched at a time, given the order of the others, until nothing gets better: a local optimum.
UnitOrder match_hidden_units(const ExpertParameters& all, const std::vector<HiddenUnits>& hidden, int64_t reference,
                             int64_t other);

// The mean of tensors of the same shape by their weights, computed in fp64; those of weight 0 are not read. weights:
// not negative, not all 0. A single tensor with weight is returned with its bits.
at::Tensor weighted_mean(const std::vector<at::Tensor>& tensors, const std::vector<double>& weights);

}  // namespace sparsight
