#include "sparsight/dg/algorithms/side_optimizer.h"

#include <cmath>

#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/optim/gradients.h"

namespace sparsight {

SideOptimizer::SideOptimizer(const std::string& name, const NamedTensors& tensors, const AdamSettings& settings)
    : name_(name),
      tensors_(tensors),
      optimizer_(optimizers().make("adam",
                                   Json{{"lr", settings.lr},
                                        {"beta1", settings.beta1},
                                        {"beta2", settings.beta2},
                                        {"weight_decay", settings.weight_decay}},
                                   "algorithm", trained(tensors, ""))),
      lr_(settings.lr) {}

SideOptimizer::SideOptimizer(const std::string& name, const NamedTensors& tensors, double sgd_lr)
    : name_(name),
      tensors_(tensors),
      optimizer_(optimizers().make("sgd", Json{{"lr", sgd_lr}, {"momentum", 0.0}, {"nesterov", false}}, "algorithm",
                                   trained(tensors, ""))),
      lr_(sgd_lr) {}

bool SideOptimizer::minimize(const at::Tensor& loss, const UpdateContext& context) {
  if (!std::isfinite(loss.item<double>())) return false;
  zero_grad();
  loss.backward();
  std::vector<at::Tensor> values;
  for (const auto& [name, tensor] : tensors_) values.push_back(tensor);
  if (!std::isfinite(gradient_norm(values))) return false;
  step(context);
  return true;
}

void SideOptimizer::save(AlgorithmState& state) const {
  for (const auto& [name, tensor] : tensors_) state.tensors.emplace_back(cat(name_, "/", name), tensor.detach());
  add_tensors(state, name_ + ".optimizer/", optimizer_->state());
}

void SideOptimizer::load(const AlgorithmState& state) {
  load_tensors(tensors_, state, name_ + "/");
  optimizer_->load_state(tensors_under(name_ + ".optimizer/", state.tensors));
}

}  // namespace sparsight
