#include "sparsight/dg/algorithms/inner_training.h"

#include "sparsight/io/weights.h"

namespace sparsight {
namespace {

AlgorithmContext context_of_copy(AlgorithmContext context) {
  context.model = copy_of_model(context);
  context.train.ema_decay = 0;
  context.train.swa_start = 0;
  return context;
}

UpdateContext with_number(UpdateContext context, int64_t number) {
  constexpr uint64_t kStepsWithin = 1024;
  context.random.step = context.random.step * kStepsWithin + static_cast<uint64_t>(number);
  return context;
}

}  // namespace

InnerTraining::InnerTraining(const AlgorithmContext& context)
    : outer_(context.model), context_(context_of_copy(context)), weights_(context_) {}

void InnerTraining::copy_weights() {
  const at::NoGradGuard no_grad;
  const NamedTensors from = named_weights(*outer_), to = named_weights(model());
  for (size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
}

UpdateResult InnerTraining::step(const Batch& batch, const UpdateContext& context, int64_t number,
                                 const std::function<void()>& before_step) {
  const UpdateContext inner = with_number(context, number);
  LossStep step(context_, weights_, inner, 1);
  step.add(batch);
  if (before_step) before_step();
  return step.finish();
}

UpdateResult InnerTraining::gradients(const Batch& batch, const UpdateContext& context, int64_t number,
                                      std::vector<at::Tensor>& found) {
  const UpdateContext inner = with_number(context, number);
  LossStep step(context_, weights_, inner, 1);
  step.add(batch);
  found.clear();
  for (const at::Tensor& parameter : trainable()) found.push_back(parameter.grad());
  weights_.zero_grad();
  UpdateResult result = step.finish_without_update();
  return result;
}

}  // namespace sparsight
