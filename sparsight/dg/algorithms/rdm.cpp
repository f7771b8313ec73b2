#include "sparsight/dg/algorithms/rdm.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include "sparsight/core/error.h"
#include "sparsight/dg/algorithms/anneal.h"
#include "sparsight/dg/algorithms/feature_distance.h"
#include "sparsight/ops/softmax_cross_entropy.h"

namespace sparsight {
namespace {

// [B_e] per domain.
std::vector<at::Tensor> domain_losses(const DomainPass& pass) {
  const std::vector<at::Tensor> logits = pass.logits();
  std::vector<at::Tensor> losses;
  for (size_t e = 0; e < logits.size(); ++e) {
    const Batch& batch = pass.domains[e];
    losses.push_back(softmax_cross_entropy(logits[e], batch.targets.defined() ? batch.targets : batch.labels));
  }
  return losses;
}

const at::Tensor& worst_domain(const std::vector<at::Tensor>& losses) {
  size_t worst = 0;
  double most = 0;
  for (size_t e = 0; e < losses.size(); ++e) {
    const double risk = losses[e].detach().mean().item<double>();
    if (e == 0 || risk > most) {
      worst = e;
      most = risk;
    }
  }
  return losses[worst];
}

class Rdm : public DomainAlgorithm {
 public:
  Rdm(const RdmOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 2), options_(options), anneal_{options.anneal} {}

 protected:
  void begin(const UpdateContext& update) override {
    anneal_.reset(update, weights());
    if (options_.lr > 0 && anneal_.begun(update)) weights().set_base_lr(options_.lr);
  }
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const std::vector<at::Tensor> losses = domain_losses(pass);
    const at::Tensor distance = risk_distribution_distance(losses);
    log_value(log, "penalty", distance);
    const at::Tensor risk = pass.risks().mean();
    if (!anneal_.begun(pass.update)) return risk;
    return risk + options_.lambda * distance + options_.variance_weight * risk_variances(losses);
  }

 private:
  RdmOptions options_;
  Anneal anneal_;
};

}  // namespace

void RdmOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the distance between distributions of losses").search = {
      "rdm_lambda", "U(0.1,10)"};
  set.real("variance_weight", &variance_weight, {0, 1e9}, "weight of the variances of losses").search = {
      "variance_weight", "U(0.001,0.007)"};
  set.integer("anneal", &anneal, {0, 1'000'000'000}, "update from which on these terms count").search = {
      "rdm_penalty_anneal_iters", "floor(U(800,2700))"};
  set.real("lr", &lr, {0, 1e6}, "base learning rate from then on; 0: that of [optimizer]").search = {
      "rdm_lr", "U(0.000008,0.00002)"};
}

std::vector<ProtocolDefault> rdm_defaults() {
  const std::string batches = "floor(U(30,60))";
  return {{"domain_net", "algorithm.lambda", 0.5, "U(0.1,1.0)"},
          {"pacs", "algorithm.lambda", 5.0, "U(1.0,10.0)"},
          {"terra_incognita", "algorithm.lambda", 5.0, "U(1.0,10.0)"},
          {"domain_net", "algorithm.anneal", 2400, "floor(U(1500,3000))"},
          {"domain_net", "algorithm.variance_weight", 0.0, ""},
          {"office_home", "algorithm.variance_weight", 0.0, ""},
          {"terra_incognita", "algorithm.variance_weight", 0.0, ""},
          {kPhotographs, "loader.batch", 88, "floor(U(70,100))"},
          {"domain_net", "loader.batch", 40, batches},
          {"terra_incognita", "loader.batch", 40, batches}};
}

at::Tensor risk_distribution_distance(const std::vector<at::Tensor>& losses) {
  return mmd_distance(worst_domain(losses).unsqueeze(1), at::cat(losses).unsqueeze(1),
                      {1e-4, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3});
}

at::Tensor risk_variances(const std::vector<at::Tensor>& losses) {
  const at::Tensor& worst = worst_domain(losses);
  if (worst.numel() < 2)
    fail("rdm needs at least 2 images of each domain, got ", worst.numel(), "; raise loader.batch");
  return at::cat(losses).var(/*unbiased=*/true) + worst.var(/*unbiased=*/true);
}

std::shared_ptr<Algorithm> make_rdm(const RdmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Rdm>(options, context);
}

}  // namespace sparsight
