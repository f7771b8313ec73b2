// Data for the experiments on fixed routing. None of it is in the paper, which has no experiment on its theory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sparsight/papers/robust_moe/theory/fixed_routing.h"

namespace sparsight::robust_moe {

// Two experts of 2 samples in 4 dimensions: on orthogonal coordinates; with the same inputs, and the same or opposite
// targets.
enum class TwoExpertCase { orthogonal, same_targets, opposite_targets };
RoutedData two_expert_case(TwoExpertCase which);

// D = 1: both experts have the input 1, and their own target.
RoutedData scalar_case(double first, double second);

// Four experts of 3 samples, each on its own two of 8 coordinates, all with solutions of the same norm. equal_scales:
// all Gram matrices have the same eigenvalues; otherwise their inputs and targets are scaled by 1, 1.1, 1.2, 1.3.
// rotation: a seed of a random rotation of all inputs.
RoutedData orthogonal_blocks(bool equal_scales, std::optional<uint64_t> rotation = {});

// Three experts of 4 samples on two directions each of R^6, which are orthogonal at tilt 0.
RoutedData tilted_subspaces(double tilt);

// Random inputs of rank 1 to 3 for each expert, and random targets with a scale of 1e-3 to 10. Experts have their own
// directions, orthogonal to each other's at tilt 0, or share 1 to 4 dimensions.
RoutedData random_instance(int64_t experts, double tilt, bool shared, uint64_t seed);

// What one dense model is fitted to, to be split among experts.
struct LabelledRows {
  at::Tensor inputs;  // [N,D]
  at::Tensor labels;  // [N], 1 or -1
};
// Rows N(0, I/D), drawn one after the other, then the labels.
LabelledRows gaussian_rows(int64_t samples, int64_t width, uint32_t seed);
// Blocks of 3 unit rows, each block on its own 4 coordinates; the labels of a block follow its rows.
LabelledRows block_rows(int64_t blocks, uint32_t seed);

// Row n goes to expert n E / N (consecutive rows), or n mod E.
RoutedData split_consecutive(const LabelledRows& rows, int64_t experts);
RoutedData split_modulo(const LabelledRows& rows, int64_t experts);
// To a random expert; experts without a row are left out.
RoutedData split_randomly(const LabelledRows& rows, int64_t experts, uint64_t seed);

}  // namespace sparsight::robust_moe
