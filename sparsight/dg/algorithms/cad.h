// Contrastive adversarial domain bottleneck (Ruan et al. 2022, "Optimal Representations for Covariate Shift";
// DomainBed's CAD and CondCAD): CE + lambda L. With similarities s_ij = z_i z_j / T of the images' features, p_ij the
// softmax of s_i over the other images, or (conditional) over the others of the same class,
//
//   L = -(T / 0.07) mean_i log sum over j of other domains of p_ij         flipped = true
//   L = (T / 0.07) mean_i log sum over j of the same domain of p_ij        flipped = false
//
// over the images for which the sum has terms and (unconditional) another image has their class.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct CadOptions {
  double lambda = 0.1;
  double temperature = 0.1;
  bool normalized = false;
  bool flipped = true;
  void declare(OptionSet& set);
};

// DomainBed's names of constants.
std::vector<ProtocolDefault> cad_defaults();

// features: [B,D], labels: [B], domains: [B]. L, []; 0 if no image counts.
at::Tensor cad_loss(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& domains,
                    const CadOptions& options, bool conditional);

std::shared_ptr<Algorithm> make_cad(const CadOptions& options, const AlgorithmContext& context);
std::shared_ptr<Algorithm> make_cond_cad(const CadOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
