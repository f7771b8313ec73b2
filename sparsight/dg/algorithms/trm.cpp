#include "sparsight/dg/algorithms/trm.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/saved_tensor.h"
#include "sparsight/dg/algorithms/side_optimizer.h"

namespace sparsight {
namespace {

constexpr double kHeadRate = 0.1;
constexpr int kHeadSteps = 30, kNeumannTerms = 10;
constexpr double kLargestEntry = 10;

// Made in the first update of the second phase or from a checkpoint, which know how many domains there are.
struct DomainHeads {
  std::vector<LinearLayer> heads;
  SideOptimizer optimizer;

  DomainHeads(int64_t domains, const OutputWidths& widths, const StepRandom& random) {
    NamedTensors tensors;
    for (int64_t e = 0; e < domains; ++e) {
      heads.emplace_back(widths.features, widths.classes, random, cat("trm.", e));
      tensors.emplace_back(cat(e, ".weight"), heads.back().weight);
      tensors.emplace_back(cat(e, ".bias"), heads.back().bias);
    }
    optimizer = SideOptimizer("trm", tensors, kHeadRate);
  }
};

class Trm : public DomainAlgorithm {
 public:
  Trm(const TrmOptions& options, const AlgorithmContext& context) : DomainAlgorithm(context, 2), options_(options) {}

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    state.values["domains"] = heads_ ? static_cast<int64_t>(heads_->heads.size()) : 0;
    if (heads_) heads_->optimizer.save(state);
    save_tensor(state, "trm.shares", shares_);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    heads_.reset();
    if (const auto domains = state.values.at("domains").get<int64_t>(); domains > 0) {
      make_heads(domains);
      heads_->optimizer.load(state);
    }
    shares_ = saved_tensor(state, "trm.shares");
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor risk = pass.risk();
    if (pass.step() < options_.start) return risk;
    const auto domains = static_cast<int64_t>(pass.domains.size());
    if (!heads_) make_heads(domains);
    if (static_cast<int64_t>(heads_->heads.size()) != domains)
      fail("this step has images of ", domains, " domains, those before had ", heads_->heads.size());
    const at::Tensor all = pass.output.features.to(at::kFloat);
    const std::vector<at::Tensor> features = split_by_domain(all, pass.domains);
    fit_heads(features, pass);
    at::Tensor sum = at::zeros({});
    next_ = shares_ / shares_.sum(1, true);
    const at::Tensor shares = next_.clone();
    for (int64_t q = 0; q < domains; ++q) sum = sum + transfer_risk(q, features, pass.domains, shares);
    log_value(log, "transfer_risk", sum / domains);
    return risk + sum / domains;
  }
  void accept() override {
    if (next_.defined()) shares_ = next_;
  }

 private:
  void make_heads(int64_t domains) {
    heads_.emplace(domains, probe_widths(model()), initial_random(context()));
    if (!shares_.defined()) shares_ = at::ones({domains, domains}) - at::eye(domains);
  }

  at::Tensor risk_under(int64_t head, const at::Tensor& features, const Batch& batch) const {
    return at::cross_entropy_loss(heads_->heads[static_cast<size_t>(head)](features), batch.labels);
  }

  void fit_heads(const std::vector<at::Tensor>& features, const DomainPass& pass) {
    for (int i = 0; i < kHeadSteps; ++i) {
      at::Tensor loss = at::zeros({});
      for (size_t e = 0; e < features.size(); ++e)
        loss = loss + risk_under(static_cast<int64_t>(e), features[e].detach(), pass.domains[e]);
      heads_->optimizer.minimize(loss, pass.update);
    }
    heads_->optimizer.zero_grad();
  }

  // The term of domain q, whose row of next_ is updated. shares: [E,E], those before.
  at::Tensor transfer_risk(int64_t q, const std::vector<at::Tensor>& features, const std::vector<Batch>& domains,
                           const at::Tensor& shares) {
    const LinearLayer& head = heads_->heads[static_cast<size_t>(q)];
    const auto own = static_cast<size_t>(q);
    const at::Tensor own_gradient = torch::autograd::grad({risk_under(q, features[own], domains[own])}, {head.weight},
                                                          {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    at::Tensor others = at::zeros({});
    for (size_t p = 0; p < domains.size(); ++p) {
      if (p == own) continue;
      const auto column = static_cast<int64_t>(p);
      const at::Tensor weighted = shares[q][column] * risk_under(q, features[p], domains[p]);
      next_[q][column] *= (options_.eta * weighted.detach()).exp();
      others = others + weighted;
    }
    const at::Tensor gradient = torch::autograd::grad({others}, {head.weight}, {}, /*retain_graph=*/true)[0];
    const at::Tensor v =
        inverse_hessian_product(features[own].detach(), domains[own].labels, head.weight, head.bias, gradient.detach());
    return others - options_.cos_lambda * (v * own_gradient).sum();
  }

  TrmOptions options_;
  std::optional<DomainHeads> heads_;
  at::Tensor shares_, next_;  // a, [E,E]
};

}  // namespace

void TrmOptions::declare(OptionSet& set) {
  set.real("cos_lambda", &cos_lambda, {0, 1e9}, "weight of the product of gradients").search = {"cos_lambda",
                                                                                                "10^U(-5,0)"};
  set.integer("start", &start, {0, 1'000'000'000}, "updates of ERM before the transfer risk counts").search = {
      "iters", "floor(10^U(0,4))"};
  set.real("eta", &eta, {0, 1e6}, "step size of the weights of pairs of domains").search = {"groupdro_eta",
                                                                                            "10^U(-3,-1)"};
}

at::Tensor inverse_hessian_product(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& weight,
                                   const at::Tensor& bias, const at::Tensor& v) {
  at::Tensor term = v, sum = v;
  for (int i = 0; i < kNeumannTerms; ++i) {
    const at::Tensor loss = at::cross_entropy_loss(at::linear(features, weight, bias), labels);
    const at::Tensor gradient =
        torch::autograd::grad({loss}, {weight}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    term = (term - torch::autograd::grad({(gradient * term).sum()}, {weight})[0]).detach();
    sum = sum + term;
    if (sum.abs().max().item<double>() > kLargestEntry) break;
  }
  return sum;
}

std::shared_ptr<Algorithm> make_trm(const TrmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Trm>(options, context);
}

}  // namespace sparsight
