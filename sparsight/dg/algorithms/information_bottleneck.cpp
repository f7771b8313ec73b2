#include "sparsight/dg/algorithms/information_bottleneck.h"

#include <ATen/ops/stack.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

class InformationBottleneck : public DomainAlgorithm {
 public:
  // irm: nothing for ERM
  InformationBottleneck(const IbErmOptions& options, std::optional<IrmOptions> irm, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), anneal_{options.ib_anneal}, irm_(irm) {
    if (irm_) irm_anneal_.at = irm_->anneal;
  }

 protected:
  void begin(const UpdateContext& update) override {
    if (anneal_.begins(update) || (irm_ && irm_anneal_.begins(update))) weights().reset_optimizer();
  }
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    at::Tensor loss = pass.risks().mean();
    if (irm_) {
      const at::Tensor penalty = mean_irm_penalty(pass);
      log_value(log, "irm_penalty", penalty);
      loss = loss + irm_anneal_.weight(pass.update, 1, irm_->lambda) * penalty;
    }
    const at::Tensor variance = mean_feature_variance(pass.features());
    log_value(log, "feature_variance", variance);
    return loss + anneal_.weight(pass.update, 0, options_.ib_lambda) * variance;
  }

 private:
  IbErmOptions options_;
  Anneal anneal_, irm_anneal_;
  std::optional<IrmOptions> irm_;
};

}  // namespace

void IbErmOptions::declare(OptionSet& set) {
  set.real("ib_lambda", &ib_lambda, {0, 1e9}, "weight of the features' variance from ib_anneal on; 0 before").search = {
      "ib_lambda", "10^U(-1,5)"};
  set.integer("ib_anneal", &ib_anneal, {0, 1'000'000'000}, "update from which on the variance has its weight")
      .search = {"ib_penalty_anneal_iters", "floor(10^U(0,4))"};
}

void IbIrmOptions::declare(OptionSet& set) {
  irm.declare(set);
  ib.declare(set);
}

at::Tensor mean_feature_variance(const std::vector<at::Tensor>& features) {
  std::vector<at::Tensor> variances;
  for (const at::Tensor& of_domain : features) {
    if (of_domain.size(0) < 2)
      fail("the variance of features needs at least 2 images of each domain, got ", of_domain.size(0),
           "; raise loader.batch");
    variances.push_back(of_domain.to(at::kFloat).var(0, /*unbiased=*/true).mean());
  }
  return at::stack(variances).mean();
}

std::shared_ptr<Algorithm> make_ib_erm(const IbErmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<InformationBottleneck>(options, std::nullopt, context);
}

std::shared_ptr<Algorithm> make_ib_irm(const IbIrmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<InformationBottleneck>(options.ib, options.irm, context);
}

}  // namespace sparsight
