// The datasets of the experiments with wide residual networks, as sections of a configuration: real ones, or synthetic
// substitutes in a run on synthetic data.
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

enum class WrnData { smiling, spurious_hair, smiling_glasses, cifar10, cifar_noise, cifar_vehicles };
// True for datasets made from CelebA, false for those from CIFAR-10.
bool of_faces(WrnData data);

// Side of the face images at a scale. Differs from the paper: 64 only at scale paper; 48 (small) or 32 (smoke).
int64_t face_side(Scale scale);

// The real datasets that it is made from, with their substitutes.
std::vector<DataChoice> wrn_choices(WrnData data);
// "CelebA in celeba/", for Figure::needs.
std::string wrn_needs(WrnData data);

struct WrnDataSize {
  int64_t train = 0;  // images
  int64_t test = 0;   // 0: all
};
// Writes the sections "data" and "transforms". `correlation` is for spurious_hair.
void set_data(Json& sections, WrnData data, const WrnDataSize& size, const FigureRun& run, double correlation = 0.95);

}  // namespace sparsight::pmoe
