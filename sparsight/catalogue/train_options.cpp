#include "sparsight/catalogue/train_options.h"

#include "sparsight/catalogue/recipes.h"

namespace sparsight {

void TrainOptions::declare(OptionSet& set) {
  set.choice("recipe", &recipe, recipe_names(),
             "published training recipe: defaults of settings in several sections, which those given here override; "
             "`config show` names what came from it");
  set.integer("epochs", &epochs, {1, 1000000}, "passes over the training set");
  set.integer("max_steps", &max_steps, {0, INT64_MAX}, "maximum number of optimiser steps; 0: no limit");
  set.integer("accumulate", &accumulate, {1, 1000000}, "gradient accumulation: batches averaged into one step");
  set.real("clip_norm", &clip_norm, {0, 1e9}, "gradient clipping: maximum global norm; 0: off");
  set.real("task_weight", &task_weight, {0, 1e6}, "weight of the task loss; 0: train with the routers' [losses] only");
  set.choice("task_loss", &task_loss, {"auto", "cross_entropy", "sigmoid_cross_entropy"},
             "loss of the classes: cross entropy of the softmax, or the sum over classes of that of the sigmoid; auto: "
             "sigmoid_cross_entropy if images have several labels");
  set.choice_or_floats("class_weights", &class_weights, {"none", "balanced"}, {0, 1e6},
                       "weights of the classes in the training loss, one number for each in label order; balanced: "
                       "images / (classes * images of the class), over the training images");
  set.real("ema_decay", &ema_decay, {0, 1}, "decay of the exponential moving average of the weights (EMA); 0: off");
  set.integer("swa_start", &swa_start, {0, INT64_MAX},
              "stochastic weight averaging (SWA): step from which weights are averaged for evaluation; 0: off");
  set.integer("swa_every", &swa_every, {1, INT64_MAX}, "steps between two weights that SWA averages");
  set.choice("precision", &precision, {"fp32", "bf16", "auto"},
             "bf16 runs matrix products in bfloat16 (auto: where the CPU has it natively)");
  set.integer("eval_every", &eval_every, {0, INT64_MAX}, "steps between evaluations; 0: once per epoch");
  set.integer("eval_offset", &eval_offset, {0, INT64_MAX},
              "steps before the first evaluation, and each is that much later");
  set.integer("log_every", &log_every, {1, INT64_MAX}, "steps between lines of metrics.jsonl");
  set.real("checkpoint_minutes", &checkpoint_minutes, {0, 1e6}, "minutes between checkpoints; 0: off");
  set.integer("checkpoint_every", &checkpoint_every, {0, INT64_MAX},
              "steps between checkpoints; 0: after each evaluation");
  set.integer("patience", &patience, {0, 1000000},
              "early stopping: evaluations without a better validation accuracy; 0: off");
  set.choice("keep", &keep, {"best", "last"},
             "weights tested at the end: those with the best validation accuracy, or the last");
  set.choice("on_nan", &on_nan, {"stop", "skip"}, "what to do when the loss or gradient is not finite");
  set.text("init_from", &init_from, "weights to start from: .safetensors, .pt or .pth");
  set.choice("upcycle", &upcycle, {"copy", "random"},
             "experts of a model with MoE layers, where init_from is of a dense one: copies of its MLPs, or random");
  set.real("upcycle_noise", &upcycle_noise, {0, 1e3},
           "noise on experts that init_from copies from a dense MLP, as a multiple of its weights' standard deviation");
  set.flag("allow_missing", &allow_missing,
           "warn about weights of init_from that do not fit, and of the model that it lacks, instead of stopping");
  set.strings("freeze", &freeze, "frozen parameters, by name prefix, such as \"blocks.0\"");
  set.strings("no_decay", &no_decay,
              "parameters without weight decay, by part of the name; \"norm\" is for every layer norm");
  set.tables("param_groups", &param_groups,
             "parameter groups: {parameters = [\"router\"], lr_factor = 0.1, weight_decay = "
             "0}, by one or more whole parts of parameter names");
}

}  // namespace sparsight
