#include "sparsight/train/weight_update.h"

#include <cmath>

#include <ATen/ops/full.h>

#include "sparsight/catalogue/dist_options.h"
#include "sparsight/core/config.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/optim/gradients.h"

namespace sparsight {
namespace {

constexpr std::string_view kOwnTensors = "own/";

// A rank has only some slices of a spread parameter.
void check_takes_spread(const Optimizer& optimizer, const SpreadParameters& spread, const std::string& name) {
  for (size_t i = 0; i < optimizer.parameters().size(); ++i)
    if (const std::string& parameter = optimizer.parameters()[i].name;
        spread.contains(parameter) && optimizer.mixes_slices(i))
      fail_usage(name, " takes ", parameter,
                 " for one matrix of all experts, of which each process has only a part; except it by a part of its "
                 "name, such as \"experts.b\", or set dist.expert_parallel = 1");
}

// One process has nothing to share out.
bool shards_optimizer(const AlgorithmContext& context) {
  return context.group->size() > 1 && dist_options(context.config).shard_optimizer;
}

}  // namespace

std::optional<AverageRule> average_rule(const TrainOptions& train) {
  if (train.ema_decay > 0 && train.swa_start > 0)
    fail_usage("train.ema_decay and train.swa_start both average the weights; set one of them to 0");
  if (train.ema_decay > 0) return exponential_average(train.ema_decay);
  if (train.swa_start > 0) return mean_from(train.swa_start - 1, train.swa_every);
  return std::nullopt;
}

WeightUpdate::WeightUpdate(const AlgorithmContext& context, const WeightUpdateOptions& options)
    : model_(context.model),
      own_(options.own),
      config_({{"optimizer", context.config.at("optimizer")}}),
      base_lr_(base_learning_rate(context)),
      clip_norm_(context.train.clip_norm),
      spread_names_(*context.model),
      needs_routings_(needs_post_step_update(*context.model)),
      saves_own_part_(dist_options(context.config).checkpoint_parts) {
  if (const std::optional<AverageRule> rule = options.average ? options.average : average_rule(context.train))
    average_.emplace(named_weights(*model_), *rule);
  std::vector<OptimizedParameter> parameters = trainable_parameters(*model_, context.train);
  for (OptimizedParameter& parameter : parameters) {
    trainable_.push_back(parameter.value);
    (spread_names_.contains(parameter.name) ? spread_ : everywhere_).push_back(parameter.value);
    // A post-step update may change a parameter between the optimiser's step and the average.
    if (average_ && !needs_routings_) parameter.average = average_->delegate_average(parameter.value);
  }
  for (const OptimizedParameter& parameter : own_) {
    trainable_.push_back(parameter.value);
    everywhere_.push_back(parameter.value);
    parameters.push_back(parameter);
  }
  if (shards_optimizer(context)) {
    if (!spread_names_.empty())
      fail_usage(
          "dist.shard_optimizer is for parameters that every process has, and dist.expert_parallel spreads the "
          "experts; set one of them");
    shards_.emplace(context.group, std::move(parameters));
    parameters = shards_->own();
  }
  optimizer_ = make_optimizer(context, std::move(parameters));
  check_takes_spread(*optimizer_, spread_names_, config_["optimizer"]["name"].get<std::string>());
}

void WeightUpdate::zero_grad() {
  for (const at::Tensor& parameter : trainable_) parameter.mutable_grad().reset();
}

void WeightUpdate::reset_optimizer() {
  optimizer_ = make_component(optimizers(), config_, "optimizer", optimizer_->parameters());
}

double WeightUpdate::norm() const {
  if (spread_names_.empty()) return gradient_norm(trainable_);
  const double here = gradient_norm(everywhere_), own = gradient_norm(spread_);
  const at::Tensor parts = expert_ranks().parts->all_gather(at::full({1}, own * own, at::kDouble));
  return std::sqrt(here * here + parts.sum().item<double>());
}

bool WeightUpdate::step(const UpdateContext& context, const std::vector<Routing>& routings, bool last) {
  const double norm = this->norm();
  if (!std::isfinite(norm)) return false;
  const auto updates = static_cast<int64_t>(context.random.step);
  optimizer_->step({.lr = lr(context),
                    .gradient_factor = clip_norm_ > 0 ? clip_factor(norm, clip_norm_) : 1,
                    .average_share = average_ && last ? average_->share(updates) : 0});
  if (shards_) shards_->exchange(average_ && last);
  post_step_update(*model_, routings);
  if (average_ && last) average_->update(updates);
  return true;
}

AlgorithmState WeightUpdate::state() const {
  AlgorithmState state;
  const bool gathers = shards_ && !saves_own_part_;
  add_tensors(state, kOptimizerTensors, gathers ? shards_->gather(optimizer_->state()) : optimizer_->state());
  if (average_) add_tensors(state, kAverageTensors, average_->tensors());
  for (const OptimizedParameter& parameter : own_)
    state.tensors.emplace_back(cat(kOwnTensors, parameter.name), parameter.value.detach());
  return state;
}

void WeightUpdate::load_state(const AlgorithmState& state) {
  const NamedTensors saved = tensors_under(kOptimizerTensors, state.tensors);
  optimizer_->load_state(shards_ ? shards_->own_part(saved) : saved);
  if (average_) average_->load(tensors_under(kAverageTensors, state.tensors));
  NamedTensors own;
  for (const OptimizedParameter& parameter : own_) own.emplace_back(parameter.name, parameter.value);
  load_tensors(own, state, kOwnTensors);
}

}  // namespace sparsight
