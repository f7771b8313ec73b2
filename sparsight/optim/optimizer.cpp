#include "sparsight/optim/optimizer.h"

#include <map>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// What parameters that are updated together have in common.
using Treatment = std::tuple<bool, double, std::optional<double>>;

Treatment treatment(const OptimizedParameter& parameter) {
  return {parameter.decay, parameter.lr_factor, parameter.decay ? parameter.weight_decay : std::nullopt};
}

void update_average(const OptimizedParameter& parameter, double share) {
  if (parameter.average.defined() && share != 0) parameter.average.lerp_(parameter.value, share);
}

// Values that an optimizer may have written: its own type and shape, finite, and no negative count of steps. (Other
// states of one number, such as the moments of a router's log scale, have either sign.)
void check_saved(const std::string& name, const at::Tensor& saved, const at::Tensor& own) {
  if (saved.sizes() != own.sizes() || saved.scalar_type() != own.scalar_type())
    fail("the checkpoint's optimizer state ", name, " has shape ", saved.sizes(), " and type ", saved.scalar_type(),
         ", expected ", own.sizes(), " and ", own.scalar_type());
  if (!saved.isfinite().all().item<bool>() || (name.ends_with("/step") && (saved < 0).any().item<bool>()))
    fail("the checkpoint's optimizer state ", name,
         " is damaged: it has values that are not finite, or a negative "
         "number of steps; use another checkpoint");
}

}  // namespace

Optimizer::Optimizer(std::vector<OptimizedParameter> parameters) : parameters_(std::move(parameters)) {}

void Optimizer::step(const OptimizerStep& options) {
  at::NoGradGuard no_grad;
  std::map<Treatment, std::vector<size_t>> groups;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].value.grad().defined())
      groups[treatment(parameters_[i])].push_back(i);
    else
      update_average(parameters_[i], options.average_share);
  for (const auto& [treatment, which] : groups) {
    OptimizerStep own = options;
    own.lr *= parameters_[which.front()].lr_factor;
    update(which, own);
  }
}

void Optimizer::update(const std::vector<size_t>& which, const OptimizerStep& options) {
  if (options.gradient_factor != 1) at::_foreach_mul_(gradients(which), options.gradient_factor);
  update(which, options.lr);
  for (const size_t i : which) update_average(parameters_[i], options.average_share);
}

double Optimizer::group_weight_decay(const std::vector<size_t>& which, double own) const {
  const OptimizedParameter& parameter = parameters_[which.front()];
  return parameter.decay ? parameter.weight_decay.value_or(own) : 0.0;
}

void Optimizer::zero_grad() {
  for (const OptimizedParameter& parameter : parameters_) parameter.value.mutable_grad().reset();
}

NamedTensors Optimizer::state() const {
  NamedTensors all;
  for (const StateSlot& slot : slots_)
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (slot.tensors[i].defined()) all.emplace_back(parameters_[i].name + "/" + slot.name, slot.tensors[i]);
  return all;
}

void Optimizer::load_state(const NamedTensors& tensors) {
  at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> saved(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : state()) {
    const auto found = saved.find(name);
    if (found == saved.end())
      fail("the checkpoint has no optimizer state ", name, "; resume with the optimizer it was trained with");
    check_saved(name, found->second, tensor);
    tensor.copy_(found->second);
    saved.erase(found);
  }
  if (!saved.empty())
    fail("the checkpoint has the optimizer state ", printable(saved.begin()->first),
         ", which this run does not use; "
         "resume with the optimizer it was trained with");
}

size_t Optimizer::add_state(const std::string& name, bool scalar) {
  return add_state(name, [&](size_t i) {
    return scalar ? at::zeros({}, at::kFloat) : at::zeros_like(parameters_[i].value, at::MemoryFormat::Contiguous);
  });
}

size_t Optimizer::add_state(const std::string& name, const std::function<at::Tensor(size_t)>& start) {
  StateSlot slot{name, {}};
  for (size_t i = 0; i < parameters_.size(); ++i) slot.tensors.push_back(start(i));
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

std::vector<at::Tensor> Optimizer::values(const std::vector<size_t>& which) const {
  std::vector<at::Tensor> list;
  for (const size_t i : which) list.push_back(parameters_[i].value);
  return list;
}

std::vector<at::Tensor> Optimizer::gradients(const std::vector<size_t>& which) const {
  std::vector<at::Tensor> list;
  for (const size_t i : which) list.push_back(parameters_[i].value.grad());
  return list;
}

std::vector<at::Tensor> Optimizer::states(size_t slot, const std::vector<size_t>& which) const {
  std::vector<at::Tensor> list;
  for (const size_t i : which) list.push_back(slots_[slot].tensors[i]);
  return list;
}

}  // namespace sparsight
