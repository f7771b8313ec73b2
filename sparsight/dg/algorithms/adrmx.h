// ADRMX (Demirel et al. 2023, "ADRMX: Additive Disentanglement of Domain Features with Remix Loss", as in DomainBed). A
// second backbone, with the pretrained weights or with random ones of its own, learns the features d of domains; x - d,
// with x the model's features, should be without them. A discriminator predicts the domain from x - d: with n = 1, 2,
// ..., in updates with n mod (1 + d_steps) < d_steps it is trained (L_d), else
//
//   CE(head(x)) + CE(c2(x - d)) + CE_domain(c3(d)) + CE(head(x_i - d_i + d_j))
//     + contrastive_weight (S(x) + S(x - d)) - disc_weight L_d
//
// where i and j are two random images of a class, one pair per class, the sum divided by K; c2 and c3 MLPs of widths D,
// D/2, D/4; and S is the supervised contrastive loss at temperature 0.07 whose pairs within a domain weigh 1/2, as do
// the others. All optimisers are Adam with beta1 and beta2 = 0.9 and the rate of [optimizer], where that is adam or
// adamw; the weight decay of [optimizer] is that of the model alone, and 0 in DomainBed, which draws weight_decay but
// does not use it.
//
// Differs from DomainBed: the model's own head takes the part of the first MLP, so that prediction needs the model
// only; and pairs are images of their class, where DomainBed takes positions in the class for positions in the batch.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct AdrmxOptions {
  double contrastive_weight = 1, domain_weight = 1, disc_weight = 0.75, remix_weight = 1;
  int64_t d_steps = 2;
  double beta1 = 0.5;
  int64_t mlp_width = 256;
  int64_t mlp_depth = 9;  // linear layers
  double mlp_dropout = 0;
  void declare(OptionSet& set);
};

// Learning rates of its own, and no weight decay.
std::vector<ProtocolDefault> adrmx_defaults();

// features: [B,D], labels, domains: [B]. -sum over images i with others of their class of mean over these j of
// log(w e^s_ij / (sum_k w e^s_ik + 1e-5) + 1e-5), divided by the number of such images plus 1; s: cosines / 0.07,
// w = 1/2. [].
at::Tensor domain_contrastive_loss(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& domains);

std::shared_ptr<Algorithm> make_adrmx(const AdrmxOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
