#include "sparsight/dg/algorithms/domain_mixup.h"

#include <numeric>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include "sparsight/core/shuffle.h"
#include "sparsight/data/transforms/batch_transform.h"
#include "sparsight/eval/task_loss.h"

namespace sparsight {
namespace {

// One pass over the images of all pairs.
class DomainMixup : public DomainAlgorithm {
 public:
  DomainMixup(const DomainMixupOptions& options, const AlgorithmContext& context)
      : DomainAlgorithm(context, 1), options_(options) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<MixedPair> pairs = random_pairs(split_domains(minibatches), options_.alpha, context.random);
    std::vector<Batch> firsts;
    std::vector<at::Tensor> images;
    for (const MixedPair& pair : pairs) {
      firsts.push_back(pair.of.a);
      images.push_back(mixed_images(pair));
    }
    const Batch first = join_batches(firsts);
    LossStep step(this->context(), weights(), context, 1);
    const ModelOutput output = step.forward(first, at::cat(images));
    const std::vector<at::Tensor> logits = split_by_domain(output.logits, firsts);
    std::vector<at::Tensor> risks;
    for (size_t i = 0; i < pairs.size(); ++i) risks.push_back(mixed_risk(logits[i], pairs[i]));
    step.add(first, {output}, at::stack(risks).mean());
    return step.finish();
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  DomainMixupOptions options_;
};

}  // namespace

void DomainMixupOptions::declare(OptionSet& set) {
  set.real("alpha", &alpha, {1e-6, 1e6}, "of the distribution Beta(alpha, alpha) of lambda").search = {"mixup_alpha",
                                                                                                       "10^U(-1,1)"};
}

at::Tensor mixed_images(const MixedPair& pair) {
  return pair.lambda * pair.of.a.images + (1 - pair.lambda) * pair.of.b.images;
}

at::Tensor mixed_risk(const at::Tensor& logits, const MixedPair& pair) {
  return pair.lambda * task_loss(logits, pair.of.a) + (1 - pair.lambda) * task_loss(logits, pair.of.b);
}

std::vector<MixedPair> random_pairs(const std::vector<Batch>& domains, double alpha, const StepRandom& random) {
  std::vector<size_t> order(domains.size());
  std::iota(order.begin(), order.end(), size_t{0});
  RandomStream of_order = random.stream("domain_mixup.order"), of_lambda = random.stream("domain_mixup.lambda");
  shuffle(order, of_order);
  std::vector<MixedPair> pairs;
  for (size_t i = 0; i < order.size(); ++i)
    pairs.push_back(
        {equal_batches(domains[order[i]], domains[order[(i + 1) % order.size()]]), sample_beta(alpha, of_lambda)});
  return pairs;
}

std::shared_ptr<Algorithm> make_domain_mixup(const DomainMixupOptions& options, const AlgorithmContext& context) {
  return std::make_shared<DomainMixup>(options, context);
}

}  // namespace sparsight
