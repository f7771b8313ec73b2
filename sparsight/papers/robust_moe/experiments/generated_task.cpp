#include "sparsight/papers/robust_moe/experiments/generated_task.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/optim/schedule.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/run_config.h"

namespace sparsight::robust_moe {
namespace {

constexpr int64_t kWarmup = 30;
constexpr double kRate = 3e-3, kAdversarialRate = 1.5e-3;

AlgorithmContext training_context(const std::shared_ptr<TokenMixer>& model, double lr, uint64_t seed) {
  Config config;
  config.set("optimizer", "lr", lr, "the generated task");
  config.set("optimizer", "weight_decay", 0.01, "the generated task");
  AlgorithmContext context;
  context.config = resolve(config, config_sections());
  context.run.seed = static_cast<int64_t>(seed);
  context.model = model;
  return context;
}

// Steps are numbered from `first` on, which their images follow from.
void take_steps(Algorithm& algorithm, const Schedule& schedule, int64_t first, int64_t steps, int64_t batch,
                uint64_t seed) {
  for (int64_t step = 0; step < steps; ++step) {
    if (interrupted()) fail("interrupted after step ", step);
    const auto number = static_cast<uint64_t>(first + step);
    Minibatches minibatches(std::vector<Batch>{generated_images(seed, "train", number, batch)});
    UpdateContext context;
    context.random = {seed, number};
    context.lr_factor = schedule(step);
    const UpdateResult result = algorithm.update(minibatches, context);
    if (!result.not_finite.empty()) fail("the ", result.not_finite, " is not finite at step ", number);
  }
}

}  // namespace

Batch generated_images(uint64_t seed, const std::string& purpose, uint64_t step, int64_t count) {
  const int64_t pixels = kMixedTokens * kMixedTokens;
  at::Tensor prototypes = at::empty({kMixerClasses, pixels});
  fill_uniform(prototypes, RandomStream(seed, "generated_task.prototypes"));
  at::Tensor noise = at::empty({count, pixels});
  fill_normal(noise, RandomStream(seed, "generated_task." + purpose, step), 0, 0.10);
  Batch batch;
  batch.labels = at::arange(count, at::kLong).remainder(kMixerClasses);
  const at::Tensor centred = prototypes.index_select(0, batch.labels) - 0.5;
  batch.images = (0.5 + 0.16 * centred + noise).clamp(0, 1).view({count, 1, kMixedTokens, kMixedTokens});
  return batch;
}

std::shared_ptr<TokenMixer> train_on_generated(int64_t experts, bool adversarial, uint64_t seed,
                                               const GeneratedTraining& training) {
  const std::shared_ptr<TokenMixer> model = make_token_mixer(experts, seed);
  const TrainingLength length{1, training.steps};
  const Json warmup = {{"warmup_epochs", std::min(kWarmup, training.steps - 1)}};
  const auto erm = algorithms().make("erm", Json::object(), "algorithm", training_context(model, kRate, seed));
  take_steps(*erm, schedules().make("linear", warmup, "schedule", length), 0, training.steps, training.batch, seed);
  if (!adversarial) return model;
  const auto pgd = algorithms().make("pgd_training", Json{{"steps", 10}, {"epsilon", "8/255"}}, "algorithm",
                                     training_context(model, kAdversarialRate, seed));
  take_steps(
      *pgd, [](int64_t) { return 1.0; }, training.steps, training.adversarial_steps, training.batch, seed);
  return model;
}

}  // namespace sparsight::robust_moe
