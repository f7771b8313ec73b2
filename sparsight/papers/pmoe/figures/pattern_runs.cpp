#include "sparsight/papers/pmoe/figures/pattern_runs.h"

#include <cmath>

namespace sparsight::pmoe {
namespace {

constexpr int64_t kNeurons = 40;

}  // namespace

void PatternOptions::declare(OptionSet& set) {
  repeats.declare(set);
  set.integer("samples", &samples, {2, 1000000}, "training samples");
}

void PatternTraining::declare(OptionSet& set) {
  set.real("lr", &lr, {0, 1e6}, "learning rate");
  set.integer("batch", &batch, {1, 1000000}, "samples per step");
  set.integer("epochs", &epochs, {1, 1000000}, "maximum number of epochs");
  set.real("router_lr", &router_lr, {0, 1e6}, "learning rate of separately trained routers");
  set.integer("router_epochs", &router_epochs, {0, 1000000}, "epochs of separately trained routers");
  set.integer("router_samples", &router_samples, {0, 1000000},
              "samples that separately trained routers are trained on (N_r), the first ones; 0: all");
}

Json training_json(PatternTraining training) {
  OptionSet set;
  training.declare(set);
  return values(set);
}

PatternTraining to_training(const Json& job) {
  PatternTraining training;
  OptionSet set;
  training.declare(set);
  assign(set, job.at(kPatternTraining), kPatternTraining);
  return training;
}

PatternRun cnn_run() {
  PatternRun run;
  run.form = "cnn";
  run.experts = 1;
  run.filters = kNeurons;
  return run;
}

PatternRun separate_run(int64_t patches) {
  PatternRun run;
  run.patches = patches;
  return run;
}

PatternRun joint_run(int64_t experts, int64_t patches) {
  PatternRun run;
  run.form = "joint";
  run.experts = experts;
  run.filters = filters_of_each(kNeurons, experts);
  run.patches = patches;
  return run;
}

TwoLayerSetting pattern_setting(const PatternRun& run, const PatchSet& data) {
  TwoLayerSetting setting = two_layer_preset("paper", run.form, data);
  setting.experts = run.experts;
  setting.filters = run.filters;
  if (run.form != "cnn") setting.patches = run.patches;
  setting.init_std = 1 / std::sqrt(static_cast<double>(run.experts * run.filters));
  setting.sgd.lr = run.training.lr;
  setting.sgd.batch = run.training.batch;
  setting.sgd.epochs = run.training.epochs;
  setting.sgd.router_lr = run.training.router_lr;
  setting.sgd.router_epochs = run.training.router_epochs;
  setting.sgd.router_samples = run.training.router_samples;
  return setting;
}

PatchSet sample_set(const PatternModel& model, const std::string& part, int64_t count) {
  return patch_set(model.sample(part, count), model.patterns().size(0));
}

void sgd_step(const std::shared_ptr<PatchCnn>& model, const PatchSet& batch, double lr) {
  PatchSgdOptions options;
  options.lr = lr;
  options.batch = batch.size();
  PatchSgd(model, batch, options, 0).train_epoch();
}

at::Tensor signed_outputs(PatchCnn& model, const PatchSet& data) { return patch_outputs(model, data).select(1, 0); }

double mean_loss(PatchCnn& model, const PatchSet& data) {
  const at::Tensor f = signed_outputs(model, data).to(at::kDouble), y = 2 * data.labels.to(at::kDouble) - 1;
  return at::softplus(-y * f).mean().item<double>();
}

}  // namespace sparsight::pmoe
