#include "sparsight/dg/algorithms/gradient_masks.h"

#include <functional>

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {
namespace {

// mask: [...]
at::Tensor masked_mean(const at::Tensor& gradients, const at::Tensor& mask) {
  return mask * gradients.mean(0) / (1e-10 + mask.mean());
}

at::Tensor sign_agreement(const at::Tensor& gradients) { return gradients.sign().mean(0).abs(); }

class GradientMasks : public DomainAlgorithm {
 public:
  using Rule = std::function<at::Tensor(const at::Tensor& gradients)>;
  GradientMasks(Rule rule, size_t domains, const AlgorithmContext& context)
      : DomainAlgorithm(context, domains), rule_(std::move(rule)) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<at::Tensor>& parameters = weights().trainable();
    std::vector<std::vector<at::Tensor>> gradients(parameters.size());  // by parameter and domain
    LossStep step(this->context(), weights(), context, 1);
    for (const Batch& batch : split_domains(minibatches)) {
      step.add(batch);
      for (size_t i = 0; i < parameters.size(); ++i) {
        gradients[i].push_back(parameters[i].grad());
        parameters[i].mutable_grad().reset();
      }
    }
    for (size_t i = 0; i < parameters.size(); ++i) set_gradient(parameters[i], gradients[i]);
    return step.finish();
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  // A domain without a gradient of the parameter has a gradient of 0.
  void set_gradient(const at::Tensor& parameter, std::vector<at::Tensor>& of_domains) const {
    bool any = false;
    for (at::Tensor& gradient : of_domains) {
      any = any || gradient.defined();
      if (!gradient.defined()) gradient = at::zeros_like(parameter);
    }
    if (any) parameter.mutable_grad() = rule_(at::stack(of_domains).detach());
  }

  Rule rule_;
};

}  // namespace

void AndMaskOptions::declare(OptionSet& set) {
  set.real("tau", &tau, {0, 1}, "least |mean sign| of an entry's gradients for it to be updated").search = {
      "tau", "U(0.5,1.0)"};
}

void SandMaskOptions::declare(OptionSet& set) {
  set.real("tau", &tau, {0, 1}, "|mean sign| of an entry's gradients at which its mask is 0").search = {"tau",
                                                                                                        "U(0.0,1.0)"};
  set.real("k", &k, {0, 1e9}, "steepness of the mask").search = {"k", "10^U(-3,5)"};
}

at::Tensor and_masked(const at::Tensor& gradients, double tau) {
  return masked_mean(gradients, sign_agreement(gradients).ge(tau).to(gradients.scalar_type()));
}

at::Tensor sand_masked(const at::Tensor& gradients, const SandMaskOptions& options) {
  const at::Tensor steepness = options.k / gradients.var(0, /*unbiased=*/true);
  // Where all gradients are equal, 0 times infinity is possible: such entries count as masked, but not to the last bit.
  const at::Tensor mask = (steepness * (sign_agreement(gradients) - options.tau)).tanh().clamp_min(0).nan_to_num(1e-17);
  return masked_mean(gradients, mask);
}

std::shared_ptr<Algorithm> make_and_mask(const AndMaskOptions& options, const AlgorithmContext& context) {
  return std::make_shared<GradientMasks>([tau = options.tau](const at::Tensor& g) { return and_masked(g, tau); }, 1,
                                         context);
}

std::shared_ptr<Algorithm> make_sand_mask(const SandMaskOptions& options, const AlgorithmContext& context) {
  return std::make_shared<GradientMasks>([options](const at::Tensor& g) { return sand_masked(g, options); }, 2,
                                         context);
}

}  // namespace sparsight
