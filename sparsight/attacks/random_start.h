// Random points to start from. Those of an image follow from (seed, purpose, restart, number of the image) alone.
#pragma once

#include <string>

#include "sparsight/attacks/attack.h"

namespace sparsight {

enum class StartKind {
  ball,     // uniform in the ball: a direction of length epsilon * U^(1/D), Gaussian for l2, Laplacian for l1
  surface,  // linf: epsilon * u / max|u|, u uniform in -1..1; l2: a Gaussian direction of length epsilon; l1: Gaussian
            // numbers, projected onto the ball within the range of pixels (as in the authors' code of APGD)
};

// Returns [B,...]: batch.pixels plus a random perturbation of at most `scale` * epsilon, clipped to the range of
// pixels.
at::Tensor random_start(const AttackBatch& batch, const AttackContext& context, StartKind kind,
                        const std::string& purpose, int64_t restart, double scale = 1);

}  // namespace sparsight
