// SelfReg (Kim et al. 2021, "SelfReg: Self-supervised Contrastive Regularization for Domain Generalization", as in
// DomainBed). Images are paired with random ones of the same class, twice; lambda ~ Beta(1/2, 1/2) is drawn per step.
// l are logits, z features, q = projection(z) projected features, ' and '' mark partners:
//
//   l~ = lambda l' + (1 - lambda) l'',   q~ likewise
//   CE + min(CE, 1) [lambda (MSE(l, l') + w MSE(z, q')) + (1 - lambda) (MSE(l, l~) + w MSE(z, q~))]
//
// w = 0.3. The factor min(CE, 1) carries no gradient. The projection: linear, batch norm, ReLU, twice, then linear and
// batch norm; hidden width 2D, or D for D = 2048. It is not part of the model.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct SelfRegOptions {
  double feature_weight = 0.3;
  double alpha = 0.5;
  void declare(OptionSet& set);
};

// labels: [B]. For each image a position of an image of its class, a random permutation within each class: [B] int64.
at::Tensor same_class_partners(const at::Tensor& labels, RandomStream random);

std::shared_ptr<Algorithm> make_selfreg(const SelfRegOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
