#include "sparsight/dg/algorithms/spectral_decoupling.h"

namespace sparsight {
namespace {

class SpectralDecoupling : public DomainAlgorithm {
 public:
  SpectralDecoupling(const SpectralDecouplingOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor penalty = pass.output.logits.square().mean();
    log_value(log, "penalty", penalty);
    return pass.risk() + options_.weight * penalty;
  }

 private:
  SpectralDecouplingOptions options_;
};

}  // namespace

void SpectralDecouplingOptions::declare(OptionSet& set) {
  set.real("weight", &weight, {0, 1e9}, "weight of the mean squared logit").search = {"sd_reg", "10^U(-5,-1)"};
}

std::shared_ptr<Algorithm> make_spectral_decoupling(const SpectralDecouplingOptions& options,
                                                    const AlgorithmContext& context) {
  return std::make_shared<SpectralDecoupling>(options, context);
}

}  // namespace sparsight
