// Mutual information regularisation with oracle (Cha et al. 2022, "Domain Generalization by Mutual-Information
// Regularization with Pre-trained Models", equation 4): features stay predictive of those of the model at the start,
//
//   CE + lambda sum_l 1/2 mean[(z_l - z0_l)² / s_l + ln s_l],   s_l = softplus(b_l) + 1e-5
//
// z_l: the outputs of stem and blocks (ImageModel::tap_names(), but for final norms), z0_l those of a frozen copy of
// the model as it was when training began, in evaluation mode; s_l is learned per channel and starts at 0.1. b_l learns
// at lr_factor times the rate. Use it with pretrained weights ([train] init_from).
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct MiroOptions {
  double lambda = 0.1;
  double lr_factor = 10;
  std::vector<std::string> layers;
  void declare(OptionSet& set);
};

// Weight, learning rate, decay and dropout by dataset, as its authors chose them.
std::vector<ProtocolDefault> miro_defaults();

// z, z0: [B,C,H,W] or [B,S,C] or [B,C]; b: [C]. One term of the sum, [].
at::Tensor miro_term(const at::Tensor& z, const at::Tensor& z0, const at::Tensor& b);
// b for s = variance.
double miro_start(double variance);

std::shared_ptr<Algorithm> make_miro(const MiroOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
