#include "sparsight/catalogue/train_options.h"

namespace sparsight {

void TrainOptions::declare(OptionSet& set) {
  set.integer("epochs", &epochs, {1, 1000000}, "passes over the training set");
  set.integer("max_steps", &max_steps, {0, INT64_MAX}, "stop after this many optimiser steps; 0 for no limit");
  set.integer("accumulate", &accumulate, {1, 1000000}, "batches whose gradients are averaged into one step");
  set.real("clip_norm", &clip_norm, {0, 1e9}, "largest gradient norm, larger ones are scaled down; 0 to switch off");
  set.real("task_weight", &task_weight, {0, 1e6},
           "weight of the task's loss; 0 trains by the [losses] of routers alone");
  set.real("ema_decay", &ema_decay, {0, 1}, "decay of the weights' moving average; 0 to switch off");
  set.integer("swa_start", &swa_start, {0, INT64_MAX},
              "step after which evaluation uses the mean of the weights since then (SWA); 0 to switch off");
  set.integer("swa_every", &swa_every, {1, INT64_MAX}, "steps between the weights that the mean counts");
  set.choice("precision", &precision, {"fp32", "bf16", "auto"},
             "bf16 runs matrix products in bfloat16 (auto: where the CPU has it natively)");
  set.integer("eval_every", &eval_every, {0, INT64_MAX}, "steps between evaluations; 0 for once an epoch");
  set.integer("log_every", &log_every, {1, INT64_MAX}, "steps between lines of metrics.jsonl");
  set.real("checkpoint_minutes", &checkpoint_minutes, {0, 1e6}, "minutes between checkpoints; 0 to switch off");
  set.integer("checkpoint_every", &checkpoint_every, {0, INT64_MAX},
              "steps between checkpoints; 0 for after each evaluation");
  set.integer("patience", &patience, {0, 1000000},
              "stop after this many evaluations without a better validation accuracy; 0 to switch off");
  set.choice("keep", &keep, {"best", "last"},
             "the weights that are tested at the end: those of the best validation accuracy, or the last");
  set.choice("on_nan", &on_nan, {"stop", "skip"}, "what to do when the loss or gradient is not finite");
  set.text("init_from", &init_from, "weights to start from: .safetensors, .pt or .pth");
  set.real("upcycle_noise", &upcycle_noise, {0, 1e3},
           "noise on experts that init_from copies from a dense MLP, as a multiple of its weights' standard deviation");
  set.strings("freeze", &freeze, "name prefixes of parameters that stay as they are, such as \"blocks.0\"");
  set.strings("no_decay", &no_decay, "parts of parameter names that are excluded from weight decay");
  set.tables(
      "param_groups", &param_groups,
      "learning rates and weight decays of their own: {parameters = [\"router\"], lr_factor = 0.1, weight_decay = "
      "0}, by one or more whole parts of parameter names");
}

}  // namespace sparsight
