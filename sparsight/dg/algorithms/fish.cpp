#include "sparsight/dg/algorithms/fish.h"

#include <optional>

#include "sparsight/core/shuffle.h"
#include "sparsight/dg/algorithms/inner_training.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"

namespace sparsight {
namespace {

class Fish : public Algorithm {
 public:
  Fish(const FishOptions& options, const AlgorithmContext& context)
      : Algorithm(context), options_(options), inner_(context) {
    check_domains(context, 1);
    if (const std::optional<AverageRule> rule = average_rule(context.train))
      average_.emplace(named_weights(model()), *rule);
  }

  // If the loss of a domain is not finite, the model stays as it is, but the inner optimiser has followed the domains
  // before.
  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    std::vector<Batch> domains = batches_by_domain(minibatches, 1);
    if (options_.shuffle) {
      RandomStream random = context.random.stream("fish.order");
      shuffle(domains, random);
    }
    inner_.copy_weights();
    NamedMeans means;
    UpdateResult result;
    for (size_t e = 0; e < domains.size(); ++e) {
      result = inner_.step(domains[e], context, static_cast<int64_t>(e));
      if (!result.not_finite.empty()) return result;
      means.add(result.means);
    }
    move_towards_copy();
    if (average_) average_->update(static_cast<int64_t>(context.random.step));
    result.means = means;
    return result;
  }

  AlgorithmState state() const override {
    AlgorithmState state = inner_.state();
    if (average_) add_tensors(state, kAverageTensors, average_->tensors());
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    inner_.load_state(state);
    if (average_) average_->load(tensors_under(kAverageTensors, state.tensors));
  }
  WeightAverage* weight_average() override { return average_ ? &*average_ : nullptr; }

 private:
  // Counts of batches are those of the copy. At the ends, weights are copied rather than computed, so that meta_lr = 1
  // is plain training to the last bit.
  void move_towards_copy() {
    const at::NoGradGuard no_grad;
    const NamedTensors own = named_weights(model()), copy = named_weights(inner_.model());
    for (size_t i = 0; i < own.size(); ++i) {
      if (!own[i].second.is_floating_point() || options_.meta_lr == 1) {
        own[i].second.copy_(copy[i].second);
      } else {
        own[i].second.lerp_(copy[i].second, options_.meta_lr);
      }
    }
  }

  FishOptions options_;
  InnerTraining inner_;
  std::optional<WeightAverage> average_;
};

}  // namespace

void FishOptions::declare(OptionSet& set) {
  set.real("meta_lr", &meta_lr, {0, 1}, "how far the model moves towards the copy (epsilon in the paper)").search = {
      "meta_lr", "{0.05,0.1,0.5}"};
  set.flag("shuffle", &shuffle, "visit the domains in random order; else in theirs");
}

std::shared_ptr<Algorithm> make_fish(const FishOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Fish>(options, context);
}

}  // namespace sparsight
