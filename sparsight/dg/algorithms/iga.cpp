#include "sparsight/dg/algorithms/iga.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/eval/task_loss.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

class Iga : public DomainAlgorithm {
 public:
  Iga(const IgaOptions& options, const AlgorithmContext& context) : DomainAlgorithm(context, 1), options_(options) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const TwiceDifferentiable twice;
    LossStep step(this->context(), weights(), context, 1);
    const std::vector<Batch> domains = split_domains(minibatches);
    std::vector<ModelOutput> passes;
    std::vector<at::Tensor> risks;
    std::vector<std::vector<at::Tensor>> gradients;
    int64_t images = 0;
    for (const Batch& batch : domains) {
      passes.push_back(step.forward(batch, batch.images, images));
      images += batch.labels.size(0);
      risks.push_back(task_loss(passes.back().logits, batch));
      gradients.push_back(torch::autograd::grad({risks.back()}, weights().trainable(), {}, /*retain_graph=*/true,
                                                /*create_graph=*/true, /*allow_unused=*/true));
    }
    const at::Tensor spread = gradient_spread(gradients);
    NamedMeans log;
    log_value(log, "penalty", spread);
    step.add(domains.back(), passes, at::stack(risks).mean() + options_.penalty * spread);
    UpdateResult result = step.finish();
    result.means.add(log);
    return result;
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  IgaOptions options_;
};

}  // namespace

void IgaOptions::declare(OptionSet& set) {
  set.real("penalty", &penalty, {0, 1e12}, "weight of the spread of the domains' gradients").search = {"penalty",
                                                                                                       "10^U(1,5)"};
}

at::Tensor gradient_spread(const std::vector<std::vector<at::Tensor>>& gradients) {
  at::Tensor sum = at::zeros({});
  for (size_t i = 0; i < gradients.at(0).size(); ++i) {
    at::Tensor some;
    for (const auto& of_domain : gradients)
      if (of_domain[i].defined()) some = of_domain[i];
    if (!some.defined()) continue;
    std::vector<at::Tensor> all;
    for (const auto& of_domain : gradients)
      all.push_back(of_domain[i].defined() ? of_domain[i] : at::zeros_like(some).detach());
    const at::Tensor stacked = at::stack(all);
    // The mean needs no gradient: deviations from it add up to 0.
    sum = sum + (stacked - stacked.detach().mean(0)).square().sum();
  }
  return sum;
}

std::shared_ptr<Algorithm> make_iga(const IgaOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Iga>(options, context);
}

}  // namespace sparsight
