#include "sparsight/dg/algorithms/transfer.h"

#include <cmath>

#include <ATen/ops/stack.h>

#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/side_optimizer.h"
#include "sparsight/eval/task_loss.h"

namespace sparsight {
namespace {

void copy_tensors(const NamedTensors& from, const NamedTensors& to) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
}

// The context with plain SGD at the rate of [optimizer].
AlgorithmContext with_plain_sgd(AlgorithmContext context) {
  Json& optimizer = context.config.at("optimizer");
  optimizer =
      Json{{"name", "sgd"}, {"lr", optimizer.at("lr")}, {"momentum", 0.0}, {"nesterov", false}, {"weight_decay", 0.0}};
  return context;
}

class Transfer : public DomainAlgorithm {
 public:
  Transfer(const TransferOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(options.gda ? with_plain_sgd(context) : context, 2),
        options_(options),
        adversary_(copy_of_model(context)) {
    const at::Tensor features = probe_model(model()).features;
    head_ = head_parameters(model(), features);
    adversary_head_ = head_parameters(*adversary_, features);
    if (head_.empty()) fail_usage("algorithm transfer needs a head that is trained; do not freeze it");
    ascent_ = SideOptimizer("adversary", adversary_head_, options_.lr_d);
  }

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<Batch> domains = split_domains(minibatches);
    const Batch joined = join_batches(domains);
    LossStep first(this->context(), weights(), context, 1);
    const ModelOutput output = first.forward(joined, joined.images);
    first.add(joined, {output}, task_loss(output.logits, joined));
    UpdateResult result = first.finish(/*last=*/false);
    if (!result.not_finite.empty()) return result;
    const UpdateResult second = close_gap(joined, domains, context);
    result.not_finite = second.not_finite;
    result.remedy = second.remedy;
    if (!result.not_finite.empty()) return result;
    copy_tensors(head_, adversary_head_);
    result.means.add("gap", raise_gap(joined, domains, context), 1);
    return result;
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    ascent_.save(state);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    ascent_.load(state);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  // lambda gap of the adversary on features [B,D].
  at::Tensor weighted_gap(const at::Tensor& features, const std::vector<Batch>& domains) const {
    const std::vector<at::Tensor> logits = split_by_domain(classify(*adversary_, features), domains);
    std::vector<at::Tensor> risks;
    for (size_t e = 0; e < domains.size(); ++e) risks.push_back(task_loss(logits[e], domains[e]));
    const at::Tensor all = at::stack(risks);
    return options_.lambda * (all.max() - all.min());
  }

  UpdateResult close_gap(const Batch& joined, const std::vector<Batch>& domains, const UpdateContext& context) {
    LossStep step(this->context(), weights(), context, 1);
    ModelOutput output = step.forward(joined, joined.images);
    step.add(joined, {output}, weighted_gap(output.features, domains));
    return step.finish();
  }

  // Returns the last gap.
  double raise_gap(const Batch& joined, const std::vector<Batch>& domains, const UpdateContext& context) {
    at::Tensor features;
    {
      const at::NoGradGuard no_grad;
      const LossStep step(this->context(), weights(), context, 1);
      features = step.forward(joined, joined.images).features;
    }
    double gap = 0;
    for (int64_t i = 0; i < options_.d_steps; ++i) {
      const at::Tensor loss = -weighted_gap(features, domains);
      gap = -loss.item<double>();
      ascent_.minimize(loss, context);
      project_to_ball(adversary_head_, head_, options_.delta);
    }
    return gap;
  }

  TransferOptions options_;
  std::shared_ptr<ImageModel> adversary_;  // of which only the head is used
  NamedTensors head_, adversary_head_;
  SideOptimizer ascent_;
};

}  // namespace

void TransferOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the gap between the domains' risks").search = {"t_lambda",
                                                                                                  "10^U(-2,1)"};
  set.real("delta", &delta, {0, 1e9}, "largest distance of the adversary from the head").search = {"delta",
                                                                                                   "U(0.1,3.0)"};
  set.integer("d_steps", &d_steps, {1, 1000}, "steps of the adversary per update").search = {"d_steps_per_g",
                                                                                             "{1,2,5}"};
  set.real("lr_d", &lr_d, {0, 1e6}, "learning rate of the adversary, scaled by the schedule").search = {
      "lr_d", "10^U(-4.5,-2.5)"};
  set.flag("gda", &gda, "the model's steps are plain SGD, without momentum and weight decay, as the adversary's");
}

std::vector<ProtocolDefault> transfer_defaults() {
  return {{kEverySet, "algorithm.gda", false, "{true}", "gda"},
          {kEverySet, "", 0.0, "10^U(-6,-2)", "weight_decay_d"},
          {kEverySet, "", 0.5, "{0.0,0.5}", "beta1"}};
}

void project_to_ball(const NamedTensors& tensors, const NamedTensors& centre, double delta) {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    squares += (tensors[i].second - centre[i].second).to(at::kDouble).square().sum().item<double>();
  const double distance = std::sqrt(squares);
  if (distance <= delta) return;
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].second.copy_(centre[i].second + (delta / distance) * (tensors[i].second - centre[i].second));
}

std::shared_ptr<Algorithm> make_transfer(const TransferOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Transfer>(options, context);
}

}  // namespace sparsight
