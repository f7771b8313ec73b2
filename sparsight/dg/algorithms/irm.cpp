#include "sparsight/dg/algorithms/irm.h"

#include <ATen/ops/one_hot.h>
#include <ATen/ops/stack.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// The gradient over every second image from `first` on.
at::Tensor scale_gradient(const at::Tensor& logits, const at::Tensor& targets, int64_t first) {
  const at::Tensor l = logits.slice(0, first, std::nullopt, 2), y = targets.slice(0, first, std::nullopt, 2);
  return ((l.softmax(1) - y) * l).sum(1).mean();
}

class Irm : public DomainAlgorithm {
 public:
  Irm(const IrmOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), anneal_{options.anneal} {}

 protected:
  void begin(const UpdateContext& update) override { anneal_.reset(update, weights()); }
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor penalty = mean_irm_penalty(pass);
    log_value(log, "penalty", penalty);
    return pass.risks().mean() + anneal_.weight(pass.update, 1, options_.lambda) * penalty;
  }

 private:
  IrmOptions options_;
  Anneal anneal_;
};

}  // namespace

void IrmOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the penalty from the anneal step on; 1 before").search = {
      "irm_lambda", "10^U(-1,5)"};
  set.integer("anneal", &anneal, {0, 1'000'000'000}, "update from which on the penalty has its weight").search = {
      "irm_penalty_anneal_iters", "floor(10^U(0,4))"};
}

at::Tensor irm_penalty(const at::Tensor& logits, const Batch& batch) {
  if (logits.size(0) < 2)
    fail("irm compares two halves of each domain's batch, which need at least 2 images; raise loader.batch");
  const at::Tensor targets =
      batch.targets.defined() ? batch.targets : at::one_hot(batch.labels, logits.size(1)).to(logits.scalar_type());
  return scale_gradient(logits, targets, 0) * scale_gradient(logits, targets, 1);
}

at::Tensor mean_irm_penalty(const DomainPass& pass) {
  const std::vector<at::Tensor> logits = pass.logits();
  std::vector<at::Tensor> penalties;
  for (size_t e = 0; e < logits.size(); ++e) penalties.push_back(irm_penalty(logits[e], pass.domains[e]));
  return at::stack(penalties).mean();
}

std::shared_ptr<Algorithm> make_irm(const IrmOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Irm>(options, context);
}

}  // namespace sparsight
