// Inter-environmental gradient alignment (Koyama and Yamaguchi 2021, "When Is Invariance Useful in an
// Out-of-Distribution Generalization Problem?"):
//
//   mean_e R_e + penalty sum_e |grad R_e - mean grad R|²
//
// over all trained parameters. The gradient of the penalty needs second derivatives, so that passes run without the
// hand-written kernels (ops/twice_differentiable.h).
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct IgaOptions {
  double penalty = 1000;
  void declare(OptionSet& set);
};

// gradients: by domain and parameter; undefined ones are 0. The sum above, [].
at::Tensor gradient_spread(const std::vector<std::vector<at::Tensor>>& gradients);

std::shared_ptr<Algorithm> make_iga(const IgaOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
