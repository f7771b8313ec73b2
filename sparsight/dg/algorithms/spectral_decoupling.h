// Spectral decoupling (Pezeshki et al. 2021, "Gradient Starvation: A Learning Proclivity in Neural Networks", equation
// 25; DomainBed's SD): CE + weight mean(logits²).
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct SpectralDecouplingOptions {
  double weight = 0.1;
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_spectral_decoupling(const SpectralDecouplingOptions& options,
                                                    const AlgorithmContext& context);

}  // namespace sparsight
