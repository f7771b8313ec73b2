// Risk distribution matching (Nguyen et al. 2024, "Domain Generalisation via Risk Distribution Matching", as in
// DomainBed): the distribution of losses in the worst domain should be that of all,
//
//   mean_e R_e + lambda MMD²(losses of the worst domain, all losses) + variance_weight (Var all + Var worst)
//
// with kernel widths 1e-4 ... 1e3 (feature_distance.h) and variances that divide by the number less 1. Both terms begin
// at the anneal step, where the optimiser starts anew with the rate lr (0: that of [optimizer]).
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct RdmOptions {
  double lambda = 5;
  double variance_weight = 0.004;
  int64_t anneal = 1500;
  double lr = 1.5e-5;
  void declare(OptionSet& set);
};

// Weights, anneal step and batch by dataset.
std::vector<ProtocolDefault> rdm_defaults();

// losses: [B_e] per domain. The MMD² above, [].
at::Tensor risk_distribution_distance(const std::vector<at::Tensor>& losses);
// The sum of variances above, [].
at::Tensor risk_variances(const std::vector<at::Tensor>& losses);

std::shared_ptr<Algorithm> make_rdm(const RdmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
