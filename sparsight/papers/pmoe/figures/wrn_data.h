// The data of the experiments with wide residual networks as sections of a configuration: the real sets where a run's
// folder of data has them, else what stands in.
#pragma once

#include <string>

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

enum class WrnData { smiling, spurious_hair, smiling_glasses, cifar10, cifar_noise, cifar_vehicles };
// Whether it is made of CelebA; else of CIFAR-10.
bool of_faces(WrnData data);

// Side of the faces of a scale: 64 in the paper.
int64_t face_side(Scale scale);

// "planted glyphs for CelebA", or "" where the run has the real set.
std::string wrn_substitute(WrnData data, const FigureRun& run);

struct WrnDataSize {
  int64_t train = 0;  // images
  int64_t test = 0;   // 0: all
};
// Writes the sections "data" and "transforms". correlation: of spurious_hair.
void set_data(Json& sections, WrnData data, const WrnDataSize& size, const FigureRun& run, double correlation = 0.95);

}  // namespace sparsight::pmoe
