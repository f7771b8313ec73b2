#include "sparsight/dg/algorithms/fishr.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/stack.h>

#include "sparsight/core/error.h"
#include "sparsight/dg/algorithms/anneal.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/saved_tensor.h"

namespace sparsight {
namespace {

constexpr const char* kVariances = "fishr/variances";

FishrHead linear_head(ImageModel& model) {
  const ModelOutput output = probe_model(model);
  const NamedTensors head = head_parameters(model, output.features);
  const int64_t classes = output.logits.size(1), width = output.features.size(1);
  FishrHead found{false, false};
  bool linear = false;
  for (const auto& [name, tensor] : head) {
    if (tensor.dim() == 2 && tensor.size(1) == width) {
      linear = tensor.size(0) == classes || (tensor.size(0) == 1 && classes == 2);
      found.one_output = tensor.size(0) != classes;
    } else {
      found.has_bias = tensor.dim() == 1;
    }
  }
  if (!linear || head.size() != (found.has_bias ? 2u : 1u))
    fail_usage(
        "algorithm fishr needs a model whose head is one linear layer on its features, and which is trained; "
        "use another model, or model.pre_logits = false");
  return found;
}

class Fishr : public DomainAlgorithm {
 public:
  Fishr(const FishrOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), anneal_{options.anneal}, head_(linear_head(*context.model)) {}

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    save_tensor(state, kVariances, running_);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    running_ = saved_tensor(state, kVariances);
  }

 protected:
  void begin(const UpdateContext& update) override {
    if (options_.anneal > 0) anneal_.reset(update, weights());
  }
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const std::vector<at::Tensor> logits = pass.logits(), features = pass.features();
    std::vector<at::Tensor> of_domains;
    for (size_t e = 0; e < logits.size(); ++e)
      of_domains.push_back(gradient_variances(logits[e], pass.domains[e].labels, features[e], head_));
    at::Tensor running = (1 - options_.ema) * at::stack(of_domains);
    if (running_.defined()) running = running + options_.ema * running_;
    next_ = running.detach();
    const at::Tensor penalty = fishr_penalty(running / (1 - options_.ema));
    log_value(log, "penalty", penalty);
    return pass.risk() + anneal_.weight(pass.update, 0, options_.lambda) * penalty;
  }
  void accept() override { running_ = next_; }

 private:
  FishrOptions options_;
  Anneal anneal_;
  FishrHead head_;
  at::Tensor running_, next_;  // [E,P]
};

// The variance of products a_ik b_id over images i, from the means of products and of their squares: [K,D].
at::Tensor product_variance(const at::Tensor& a, const at::Tensor& b) {
  const auto count = static_cast<double>(a.size(0));
  const at::Tensor mean = at::matmul(a.t(), b) / count;
  return at::matmul(a.square().t(), b.square()) / count - mean.square();
}

}  // namespace

void FishrOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e12}, "weight of the penalty from the anneal step on; 0 before").search = {
      "lambda", "10^U(1,4)"};
  set.integer("anneal", &anneal, {0, 1'000'000'000}, "update from which on the penalty has its weight").search = {
      "penalty_anneal_iters", "floor(U(0,5000))"};
  set.real("ema", &ema, {0, 0.999999}, "decay of the running variances").search = {"ema", "U(0.9,0.99)"};
}

at::Tensor gradient_variances(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& features,
                              const FishrHead& head) {
  at::Tensor error = logits.softmax(1) - at::one_hot(labels, logits.size(1)).to(logits.scalar_type());
  if (head.one_output) error = error.narrow(1, 1, 1);
  at::Tensor variances = product_variance(error, features.to(logits.scalar_type())).flatten();
  if (head.has_bias) variances = at::cat({variances, error.var(0, /*unbiased=*/false)});
  return variances;
}

at::Tensor fishr_penalty(const at::Tensor& variances) {
  return (variances - variances.mean(0, true)).square().mean(1).mean();
}

std::shared_ptr<Algorithm> make_fishr(const FishrOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Fishr>(options, context);
}

}  // namespace sparsight
