#include "sparsight/moe/experts/recompute.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Whether autocast is on for a device, and with which dtype.
struct AutocastState {
  c10::DeviceType device;
  bool enabled;
  at::ScalarType type;

  explicit AutocastState(c10::DeviceType d)
      : device(d), enabled(at::autocast::is_autocast_enabled(d)), type(at::autocast::get_autocast_dtype(d)) {}
  void set() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, type);
  }
};

class AutocastGuard {
 public:
  // Autocast keeps the weights that it has cast: those of the forward pass have no graph, and those of the backward
  // pass would outlive the next update of the weights.
  explicit AutocastGuard(const AutocastState& wanted) : before_(wanted.device) {
    at::autocast::clear_cache();
    wanted.set();
  }
  ~AutocastGuard() {
    before_.set();
    at::autocast::clear_cache();
  }
  AutocastGuard(const AutocastGuard&) = delete;

 private:
  AutocastState before_;
};

// What autograd passes to the backward pass in addition to tensors.
struct Replay : torch::CustomClassHolder {
  Replay(std::shared_ptr<const torch::nn::Module> o, TensorFunction function, c10::DeviceType device)
      : owner(std::move(o)), f(std::move(function)), autocast(device) {}
  std::shared_ptr<const torch::nn::Module> owner;  // kept alive; null if no shared pointer owns it
  TensorFunction f;
  AutocastState autocast;
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  // leaves: f's `inputs` arguments, then the owner's parameters.
  static at::Tensor forward(AutogradContext* context, at::TensorList leaves, int64_t inputs,
                            const c10::intrusive_ptr<Replay>& replay) {
    context->save_for_backward(leaves.vec());
    context->saved_data["inputs"] = inputs;
    context->saved_data["replay"] = c10::IValue::make_capsule(replay);
    return replay->f(leaves.slice(0, static_cast<size_t>(inputs)).vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const auto replay = c10::static_intrusive_pointer_cast<Replay>(context->saved_data["replay"].toCapsule());
    const auto inputs = static_cast<size_t>(context->saved_data["inputs"].toInt());
    variable_list leaves = context->get_saved_variables();
    variable_list out(leaves.size() + 2);  // and for the two arguments that are not tensors
    variable_list wanted;
    std::vector<size_t> position;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const bool needed = context->needs_input_grad(i);
      if (i < inputs) leaves[i] = leaves[i].detach().requires_grad_(needed);
      if (!needed) continue;
      wanted.push_back(leaves[i]);
      position.push_back(i);
    }
    const torch::AutoGradMode with_grad(true);
    const AutocastGuard autocast(replay->autocast);
    const at::Tensor again = replay->f({leaves.begin(), leaves.begin() + static_cast<int64_t>(inputs)});
    const variable_list found = torch::autograd::grad({again}, wanted, {grads[0]}, /*retain_graph=*/std::nullopt,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < position.size(); ++i) out[position[i]] = found[i];
    return out;
  }
};

}  // namespace

at::Tensor recomputed(const torch::nn::Module& owner, const std::vector<at::Tensor>& inputs, const TensorFunction& f) {
  variable_list leaves = inputs;
  for (const at::Tensor& p : owner.parameters())
    if (p.requires_grad()) leaves.push_back(p);
  bool needed = false;
  for (const at::Tensor& leaf : leaves) needed = needed || leaf.requires_grad();
  if (!needed || !at::GradMode::is_enabled() || TwiceDifferentiable::wanted()) return f(inputs);
  const auto replay = c10::make_intrusive<Replay>(owner.weak_from_this().lock(), f, inputs[0].device().type());
  return Recomputed::apply(at::TensorList(leaves), static_cast<int64_t>(inputs.size()), replay);
}

}  // namespace sparsight
