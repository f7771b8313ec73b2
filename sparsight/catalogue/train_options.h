// Section [train]: the settings of a training run that belong to no component. Evaluation reads the precision and
// whether weights are averaged.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

struct TrainOptions {
  std::string recipe = "none";  // recipes.h
  int64_t epochs = 10;
  int64_t max_steps = 0;
  int64_t accumulate = 1;
  double clip_norm = 0;
  double task_weight = 1;
  std::string task_loss = "auto";
  Json class_weights = "none";  // train/class_weights.h
  double ema_decay = 0;
  int64_t swa_start = 0;
  int64_t swa_every = 1;
  std::string precision = "fp32";
  int64_t eval_every = 0;
  int64_t eval_offset = 0;
  int64_t log_every = 20;
  double checkpoint_minutes = 5;
  int64_t checkpoint_every = 0;
  int64_t patience = 0;
  std::string keep = "best";
  std::string on_nan = "stop";
  std::string init_from;
  std::string upcycle = "copy";
  double upcycle_noise = 0;
  bool allow_missing = false;
  std::vector<std::string> freeze;
  std::vector<std::string> no_decay = {"bias", "norm", "pos_embed", "cls_token", "dist_token", "reg_token", "gamma"};
  Json param_groups = Json::array();  // optim/parameter_groups.h
  void declare(OptionSet& set);
};

}  // namespace sparsight
