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
  setting.sgd.lr = run.lr;
  setting.sgd.batch = run.batch;
  setting.sgd.epochs = run.epochs;
  setting.sgd.router_epochs = run.router_epochs;
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

at::Tensor outputs_of(PatchCnn& model, const PatchSet& data) { return patch_outputs(model, data).select(1, 0); }

double mean_loss(PatchCnn& model, const PatchSet& data) {
  const at::Tensor f = outputs_of(model, data).to(at::kDouble), y = 2 * data.labels.to(at::kDouble) - 1;
  return at::softplus(-y * f).mean().item<double>();
}

}  // namespace sparsight::pmoe
