#include "sparsight/dg/algorithms/vrex.h"

#include "sparsight/dg/algorithms/anneal.h"

namespace sparsight {
namespace {

class Vrex : public DomainAlgorithm {
 public:
  Vrex(const VrexOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options), anneal_{options.anneal} {}

 protected:
  void begin(const UpdateContext& update) override { anneal_.reset(update, weights()); }
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor risks = pass.risks(), mean = risks.mean(), penalty = (risks - mean).square().mean();
    log_value(log, "penalty", penalty);
    return mean + anneal_.weight(pass.update, 1, options_.lambda) * penalty;
  }

 private:
  VrexOptions options_;
  Anneal anneal_;
};

}  // namespace

void VrexOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the risks' variance from the anneal step on; 1 before").search = {
      "vrex_lambda", "10^U(-1,5)"};
  set.integer("anneal", &anneal, {0, 1'000'000'000}, "update from which on the penalty has its weight").search = {
      "vrex_penalty_anneal_iters", "floor(10^U(0,4))"};
}

std::shared_ptr<Algorithm> make_vrex(const VrexOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Vrex>(options, context);
}

}  // namespace sparsight
