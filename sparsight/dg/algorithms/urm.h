// Uniform risk minimisation (Krishnamachari et al. 2024, "Uniformly Distributed Feature Representations for Fair and
// Robust Learning", adversarial form, as in DomainBed): a discriminator D tells features, squashed by tanh or ReLU,
// from uniform noise of the same range, U(-1,1) or U(0,1):
//
//   model: CE + lambda BCE(D(features), 1);   then D: BCE(D(noise), 1) + lambda BCE(D(features), 0)
//
// D: linear layers of 100 with leaky ReLU, 1 + hidden_layers of them before the output; Adam with the rate lr_d and the
// weight decay of [optimizer].
//
// Differs from DomainBed, where the squashed features are also what the classifier gets: here the model stays as it is.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct UrmOptions {
  double lambda = 0.1;
  std::string output = "tanh";
  int64_t hidden_layers = 1;
  double lr_d = 5e-5;
  void declare(OptionSet& set);
};

// Random search draws `output` too. DomainBed's constants have no settings: the adversarial form, Adam, no smoothing.
std::vector<ProtocolDefault> urm_defaults();

std::shared_ptr<Algorithm> make_urm(const UrmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
