// Domain-adversarial networks (Ganin et al. 2016, "Domain-Adversarial Training of Neural Networks") and their
// conditional form (Li et al. 2018, "Deep Domain Generalization via Conditional Invariant Adversarial Networks"), as in
// DomainBed: a discriminator, an MLP, predicts the domain from the features,
//
//   L_d = CE(domain) + penalty mean_i |d(sum CE) / d input_i|²
//
// n = 1, 2, ... is the number of the update and s = d_steps. If n mod (1 + s) < s, the discriminator minimises L_d,
// else the model minimises CE(class) - lambda L_d. Conditional (cdann): a learned embedding of the class is added to
// the features, and image i of class y counts 1 / (images of class y times K) in the sum that replaces the mean CE.
//
// Both optimisers are Adam with beta1 and beta2 = 0.9; that of the model has the rate and weight decay of [optimizer],
// where that is adam or adamw. In DomainBed's protocol these are the hyper-parameters lr_g and weight_decay_g, lr_d and
// weight_decay_d those of the discriminator; lr and weight_decay are drawn but not used. Running averages of the
// weights follow the updates of the model only.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct DannOptions {
  double lambda = 1;
  int64_t d_steps = 1;
  double grad_penalty = 0;
  double beta1 = 0.5;
  double lr_d = 5e-5;
  double weight_decay_d = 0;
  int64_t mlp_width = 256;
  int64_t mlp_depth = 3;  // linear layers
  double mlp_dropout = 0;
  void declare(OptionSet& set);
};

// lr_g and weight_decay_g.
std::vector<ProtocolDefault> dann_defaults();

// The penalty without its weight, []: logits [B,E] of `input` [B,D], which must need gradients.
at::Tensor input_gradient_penalty(const at::Tensor& logits, const at::Tensor& domains, const at::Tensor& input);
// labels: [B], domains: [B]. The weighted sum above, [].
at::Tensor class_balanced_loss(const at::Tensor& logits, const at::Tensor& domains, const at::Tensor& labels,
                               int64_t classes);
// Whether update n = 1, 2, ... is one of the discriminator.
inline bool discriminator_turn(int64_t n, int64_t d_steps) { return n % (1 + d_steps) < d_steps; }

std::shared_ptr<Algorithm> make_dann(const DannOptions& options, const AlgorithmContext& context);
std::shared_ptr<Algorithm> make_cdann(const DannOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
