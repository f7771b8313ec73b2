// Meta-learning for domain generalisation (Li et al. 2018, "Learning to Generalize: Meta-Learning for Domain
// Generalization", algorithm 1, to first order as in DomainBed): the domains are permuted, the last n test, the others
// train. Each training domain i is paired with a test domain j (these in turn, cyclically):
//
//   theta' = one step of a new optimiser from theta on R_i
//   g <- g + (grad R_i(theta) + beta grad R_j(theta')) / E
//
// and the model takes one step along g. The auxiliary losses of routed layers are part of each R.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct MldgOptions {
  double beta = 1;
  int64_t meta_test = 2;
  void declare(OptionSet& set);
};

// Positions of the domains to train and to test on; `order` is a permutation of the domains. At most order.size() - 1
// test.
struct MetaPair {
  size_t train = 0, test = 0;
};
std::vector<MetaPair> meta_pairs(const std::vector<size_t>& order, int64_t meta_test);

std::shared_ptr<Algorithm> make_mldg(const MldgOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
