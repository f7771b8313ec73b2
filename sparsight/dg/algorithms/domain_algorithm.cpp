#include "sparsight/dg/algorithms/domain_algorithm.h"

#include <cmath>

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/optim/precision.h"

namespace sparsight {

at::Tensor DomainPass::risks() const {
  const std::vector<at::Tensor> by_domain = logits();
  std::vector<at::Tensor> risks;
  for (size_t e = 0; e < domains.size(); ++e) risks.push_back(task_loss(by_domain[e], domains[e]));
  return at::stack(risks);
}

at::Tensor DomainPass::risk() const { return task_loss(output.logits, joined); }

void check_domains(const AlgorithmContext& context, size_t domains) {
  const std::string name = context.config.contains("algorithm")
                               ? context.config.at("algorithm").value("name", std::string("this"))
                               : "this algorithm";
  if (context.config.contains("loader") && !context.config.at("loader").value("per_domain", false))
    fail_usage("algorithm ", name,
               " needs a batch of each training domain in every step; set loader.per_domain = true");
  if (!context.data.domains.empty() && context.data.domains.size() < domains)
    fail_usage("algorithm ", name, " needs at least ", domains, " training domains, the data set has ",
               context.data.domains.size(), "; use other data, or algorithm.name = \"erm\"");
}

DomainAlgorithm::DomainAlgorithm(const AlgorithmContext& context, size_t domains, const WeightUpdateOptions& options)
    : Algorithm(context), domains_(domains), bf16_(use_bf16(context.train.precision)), weights_(context, options) {
  check_domains(context, domains);
}

UpdateResult DomainAlgorithm::update(Minibatches& minibatches, const UpdateContext& context) {
  const std::vector<Batch> domains = split_domains(minibatches);
  begin(context);
  LossStep step(this->context(), weights_, context, 1);
  const Batch joined = join_batches(domains);
  const DomainPass pass{domains, joined, step.forward(joined, joined.images), context};
  NamedMeans log;
  step.add(joined, {pass.output}, objective(pass, log));
  UpdateResult result = step.finish();
  result.means.add(log);
  if (result.not_finite.empty()) accept();
  return result;
}

at::Tensor DomainAlgorithm::classify(ImageModel& model, const at::Tensor& features) const {
  const AutocastScope autocast(bf16_);
  return model.classify(features);
}

NamedTensors head_parameters(ImageModel& model, const at::Tensor& features) {
  const torch::AutoGradMode with_grad(true);
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  for (const auto& item : model.named_parameters())
    if (item.value().requires_grad()) {
      names.push_back(item.key());
      parameters.push_back(item.value());
    }
  const at::Tensor logits = model.classify(features.detach());
  NamedTensors head;
  if (!logits.requires_grad()) return head;
  const auto gradients = torch::autograd::grad({logits.sum()}, parameters, {}, /*retain_graph=*/false,
                                               /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < names.size(); ++i)
    if (gradients[i].defined()) head.emplace_back(names[i], parameters[i]);
  return head;
}

void log_value(NamedMeans& log, const std::string& name, const at::Tensor& value) {
  const double number = value.item<double>();
  if (std::isfinite(number)) log.add(name, number, 1);
}

}  // namespace sparsight
