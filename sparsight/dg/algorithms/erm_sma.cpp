#include "sparsight/dg/algorithms/erm_sma.h"

namespace sparsight {
namespace {

class ErmSma : public DomainAlgorithm {
 public:
  ErmSma(const ErmSmaOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1, {.average = mean_from(options.start, 1)}) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }
};

}  // namespace

void ErmSmaOptions::declare(OptionSet& set) {
  set.integer("start", &start, {0, 1'000'000'000}, "update from which on weights are averaged").search = {
      "sma_start_iter", ""};
}

std::shared_ptr<Algorithm> make_erm_sma(const ErmSmaOptions& options, const AlgorithmContext& context) {
  return std::make_shared<ErmSma>(options, context);
}

}  // namespace sparsight
