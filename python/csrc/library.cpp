// The operators torch.ops.sparsight.*: their schemas, kernels and derivatives. Their fake kernels are in
// sparsight/_library.py. What they compute is said in routing_calls.h, expert_ops.h and router_setup.h.
#include <algorithm>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "python/csrc/calls.h"
#include "python/csrc/expert_ops.h"
#include "python/csrc/router_setup.h"
#include "python/csrc/routing_calls.h"

namespace sparsight::python {
namespace {

using at::Tensor;
using at::TensorList;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Text = std::string_view;

// ---- routings: one derivative for all
// -----------------------------------------------------------------------------------

// Calls the operator of a kind with its inputs taken from one list.
using CallBelow = variable_list (*)(Text config, const c10::SymInt& images, Text draws, const variable_list& inputs);

std::vector<Tensor> routing_backward(int64_t kind, Text config, int64_t images, Text draws,
                                     const c10::List<OptionalTensor>& inputs, const c10::List<OptionalTensor>& grads,
                                     const c10::List<bool>& needs) {
  return with_python_errors([&] {
    const std::vector<bool> wanted(needs.begin(), needs.end());
    return run_backward({static_cast<RoutingCallKind>(kind), config, images, draws, tensor_vector(inputs)},
                        tensor_vector(grads), wanted);
  });
}

class RoutingFunction : public torch::autograd::Function<RoutingFunction> {
 public:
  // present: the defined ones of `inputs`, which autograd looks at; it takes no undefined tensors.
  static variable_list forward(AutogradContext* context, TensorList present, const variable_list& inputs,
                               RoutingCallKind kind, const std::string& config, const c10::SymInt& images,
                               const std::string& draws, CallBelow call) {
    context->set_materialize_grads(false);
    context->save_for_backward(inputs);
    context->saved_data["kind"] = static_cast<int64_t>(kind);
    context->saved_data["config"] = config;
    context->saved_data["images"] = images;
    context->saved_data["draws"] = draws;
    context->saved_data["present"] = static_cast<int64_t>(present.size());
    const at::AutoDispatchBelowADInplaceOrView below;
    return call(config, images, draws, inputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    auto& saved = context->saved_data;
    const variable_list inputs = context->get_saved_variables();
    c10::List<bool> needs;
    std::vector<size_t> place(inputs.size());
    size_t present = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      place[i] = present;
      needs.push_back(inputs[i].defined() && context->needs_input_grad(present));
      present += inputs[i].defined();
    }
    // More than the first four outputs of an operator never have a gradient.
    const variable_list first(grads.begin(), grads.begin() + std::min<size_t>(4, grads.size()));
    static const auto op =
        operator_of<std::vector<Tensor>(int64_t, Text, c10::SymInt, Text, const c10::List<OptionalTensor>&,
                                        const c10::List<OptionalTensor>&, const c10::List<bool>&)>(
            "sparsight::routing_backward");
    const std::string config = saved["config"].toStringRef(), draws = saved["draws"].toStringRef();
    const std::vector<Tensor> found = op.call(saved["kind"].toInt(), config, saved["images"].toSymInt(), draws,
                                              optional_list(inputs), optional_list(first), needs);
    variable_list result(present + 6);  // and the arguments that are no tensors
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (needs[i]) result[place[i]] = found[next++];
    return result;
  }
};

variable_list routing_autograd(RoutingCallKind kind, Text config, const c10::SymInt& images, Text draws,
                               const variable_list& inputs, CallBelow call) {
  if (!needs_graph(inputs)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return call(config, images, draws, inputs);
  }
  variable_list present;
  for (const Tensor& t : inputs)
    if (t.defined()) present.push_back(t);
  return RoutingFunction::apply(TensorList(present), inputs, kind, std::string(config), images, std::string(draws),
                                call);
}

OptionalTensor optional(const Tensor& t) { return t.defined() ? OptionalTensor(t) : std::nullopt; }

// ---- route
// -----------------------------------------------------------------------------------------------------------

using Routed = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using RouteSignature = Routed(Text, const Tensor&, c10::SymInt, TensorList, const Tensor&, const OptionalTensor&,
                              const OptionalTensor&, const OptionalTensor&, Text, TensorList);

Routed routed(const variable_list& o) { return {o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8]}; }

Routed route(Text config, const Tensor& tokens, int64_t images, TensorList weights, const Tensor& seed,
             const OptionalTensor& valid, const OptionalTensor& token_id, const OptionalTensor& target, Text draw_names,
             TensorList draws) {
  return with_python_errors([&] {
    const Inputs in = Inputs().add(tokens).add(seed).add(valid).add(token_id).add(target).add(weights).add(draws);
    return routed(run({RoutingCallKind::route, config, images, draw_names, in.all}));
  });
}

variable_list route_below(Text config, const c10::SymInt& images, Text draw_names, const variable_list& in) {
  static const auto op = operator_of<RouteSignature>("sparsight::route");
  const auto count =
      static_cast<size_t>(draw_names.empty() ? 0 : 1 + std::count(draw_names.begin(), draw_names.end(), ','));
  const TensorList rest = TensorList(in).slice(5);
  const Routed r = op.call(config, in[0], images, rest.slice(0, rest.size() - count), in[1], optional(in[2]),
                           optional(in[3]), optional(in[4]), draw_names, rest.slice(rest.size() - count));
  return std::apply([](const auto&... outputs) { return variable_list{outputs...}; }, r);
}

Routed route_autograd(Text config, const Tensor& tokens, c10::SymInt images, TensorList weights, const Tensor& seed,
                      const OptionalTensor& valid, const OptionalTensor& token_id, const OptionalTensor& target,
                      Text draw_names, TensorList draws) {
  const Inputs in = Inputs().add(tokens).add(seed).add(valid).add(token_id).add(target).add(weights).add(draws);
  return routed(routing_autograd(RoutingCallKind::route, config, images, draw_names, in.all, route_below));
}

// ---- mix
// -------------------------------------------------------------------------------------------------------------

using Mixed = std::tuple<Tensor, Tensor, Tensor>;
using MixSignature = Mixed(Text, const Tensor&, c10::SymInt, TensorList, const OptionalTensor&);

Mixed mix(Text config, const Tensor& tokens, int64_t images, TensorList weights, const OptionalTensor& valid) {
  return with_python_errors([&] {
    const Inputs in = Inputs().add(tokens).add(valid).add(weights);
    const variable_list o = run({RoutingCallKind::mix, config, images, "", in.all});
    return Mixed{o[0], o[1], o[2]};
  });
}

variable_list mix_below(Text config, const c10::SymInt& images, Text, const variable_list& in) {
  static const auto op = operator_of<MixSignature>("sparsight::mix");
  const auto [dispatch, combine, logits] = op.call(config, in[0], images, TensorList(in).slice(2), optional(in[1]));
  return {dispatch, combine, logits};
}

Mixed mix_autograd(Text config, const Tensor& tokens, c10::SymInt images, TensorList weights,
                   const OptionalTensor& valid) {
  const Inputs in = Inputs().add(tokens).add(valid).add(weights);
  const variable_list o = routing_autograd(RoutingCallKind::mix, config, images, "", in.all, mix_below);
  return {o[0], o[1], o[2]};
}

// ---- routing_loss
// ----------------------------------------------------------------------------------------------------

using LossSignature = Tensor(Text, c10::SymInt, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                             const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                             const OptionalTensor&, const OptionalTensor&);

Inputs loss_inputs(const OptionalTensor& logits, const OptionalTensor& noisy_logits, const OptionalTensor& noise_scale,
                   const OptionalTensor& scores, const OptionalTensor& gate, const OptionalTensor& expert,
                   const OptionalTensor& valid, const OptionalTensor& target, const OptionalTensor& threshold) {
  return Inputs()
      .add(logits)
      .add(noisy_logits)
      .add(noise_scale)
      .add(scores)
      .add(gate)
      .add(expert)
      .add(valid)
      .add(target)
      .add(threshold);
}

Tensor routing_loss(Text config, int64_t images, const OptionalTensor& logits, const OptionalTensor& noisy_logits,
                    const OptionalTensor& noise_scale, const OptionalTensor& scores, const OptionalTensor& gate,
                    const OptionalTensor& expert, const OptionalTensor& valid, const OptionalTensor& target,
                    const OptionalTensor& threshold) {
  return with_python_errors([&] {
    const Inputs in = loss_inputs(logits, noisy_logits, noise_scale, scores, gate, expert, valid, target, threshold);
    return run({RoutingCallKind::loss, config, images, "", in.all})[0];
  });
}

variable_list loss_below(Text config, const c10::SymInt& images, Text, const variable_list& in) {
  static const auto op = operator_of<LossSignature>("sparsight::routing_loss");
  return {op.call(config, images, optional(in[0]), optional(in[1]), optional(in[2]), optional(in[3]), optional(in[4]),
                  optional(in[5]), optional(in[6]), optional(in[7]), optional(in[8]))};
}

Tensor loss_autograd(Text config, c10::SymInt images, const OptionalTensor& logits, const OptionalTensor& noisy_logits,
                     const OptionalTensor& noise_scale, const OptionalTensor& scores, const OptionalTensor& gate,
                     const OptionalTensor& expert, const OptionalTensor& valid, const OptionalTensor& target,
                     const OptionalTensor& threshold) {
  const Inputs in = loss_inputs(logits, noisy_logits, noise_scale, scores, gate, expert, valid, target, threshold);
  return routing_autograd(RoutingCallKind::loss, config, images, "", in.all, loss_below)[0];
}

// ---- moe_mlp
// ---------------------------------------------------------------------------------------------------------

using Kept = std::tuple<Tensor, Tensor>;
using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using ForwardSignature = Kept(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                              const Tensor&, const OptionalTensor&, Text, const OptionalTensor&, const OptionalTensor&,
                              bool);
using BackwardSignature = Gradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                    const OptionalTensor&, const Tensor&, const OptionalTensor&, Text,
                                    const OptionalTensor&, const OptionalTensor&, const Tensor&, bool, bool);

Kept mlp_forward(const Tensor& tokens, const Tensor& expert, const Tensor& gate, const Tensor& w1,
                 const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2, Text activation,
                 const OptionalTensor& token, const OptionalTensor& kept, bool keep) {
  return with_python_errors([&] {
    return moe_mlp_forward({tokens, expert, gate, w1, b1, w2, b2, activation, token, kept}, keep);
  });
}

Gradients mlp_backward(const Tensor& grad, const Tensor& tokens, const Tensor& expert, const Tensor& gate,
                       const Tensor& w1, const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2,
                       Text activation, const OptionalTensor& token, const OptionalTensor& kept, const Tensor& before,
                       bool need_tokens, bool need_gate) {
  return with_python_errors([&] {
    return moe_mlp_backward(grad, {tokens, expert, gate, w1, b1, w2, b2, activation, token, kept}, before, need_tokens,
                            need_gate);
  });
}

Tensor mlp_below(const Tensor& tokens, const Tensor& expert, const Tensor& gate, const Tensor& w1,
                 const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2, Text activation,
                 const OptionalTensor& token, const OptionalTensor& kept, Tensor* before) {
  static const auto op = operator_of<ForwardSignature>("sparsight::moe_mlp_forward");
  const at::AutoDispatchBelowADInplaceOrView below;
  auto [out, hidden] = op.call(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, before != nullptr);
  if (before) *before = hidden;
  return out;
}

class MoeMlpFunction : public torch::autograd::Function<MoeMlpFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& tokens, const Tensor& expert, const Tensor& gate,
                        const Tensor& w1, const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2,
                        const std::string& activation, const OptionalTensor& token, const OptionalTensor& kept) {
    Tensor before;
    Tensor out = mlp_below(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, &before);
    context->save_for_backward({tokens, expert, gate, w1, b1.value_or(Tensor()), w2, b2.value_or(Tensor()),
                                token.value_or(Tensor()), kept.value_or(Tensor()), before});
    context->saved_data["activation"] = activation;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const variable_list s = context->get_saved_variables();
    const std::string activation = context->saved_data["activation"].toStringRef();
    static const auto op = operator_of<BackwardSignature>("sparsight::moe_mlp_backward");
    const bool need_tokens = context->needs_input_grad(0), need_gate = context->needs_input_grad(2);
    const auto [tokens, gate, w1, b1, w2, b2] =
        op.call(grads[0], s[0], s[1], s[2], s[3], optional(s[4]), s[5], optional(s[6]), activation, optional(s[7]),
                optional(s[8]), s[9], need_tokens, need_gate);
    const auto where = [](bool there, const Tensor& x) { return there ? x : Tensor(); };
    return {where(need_tokens, tokens),
            {},
            where(need_gate, gate),
            w1,
            where(s[4].defined(), b1),
            w2,
            where(s[6].defined(), b2),
            {},
            {},
            {}};
  }
};

Tensor mlp_autograd(const Tensor& tokens, const Tensor& expert, const Tensor& gate, const Tensor& w1,
                    const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2, Text activation,
                    const OptionalTensor& token, const OptionalTensor& kept) {
  if (!needs_graph({tokens, gate, w1, b1.value_or(Tensor()), w2, b2.value_or(Tensor())}))
    return mlp_below(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, nullptr);
  return MoeMlpFunction::apply(tokens, expert, gate, w1, b1, w2, b2, std::string(activation), token, kept);
}

Tensor mlp(const Tensor& tokens, const Tensor& expert, const Tensor& gate, const Tensor& w1, const OptionalTensor& b1,
           const Tensor& w2, const OptionalTensor& b2, Text activation, const OptionalTensor& token,
           const OptionalTensor& kept) {
  return mlp_below(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, nullptr);
}

// ---- what has no derivative
// ------------------------------------------------------------------------------------------

std::string describe(Text config, int64_t dim) {
  return with_python_errors([&] { return describe_router(std::string(config), dim); });
}

std::vector<Tensor> init(Text config, int64_t dim, int64_t seed, Text path) {
  return with_python_errors([&] { return initial_weights(std::string(config), dim, seed, std::string(path)); });
}

std::vector<Tensor> after_step(Text config, int64_t dim, TensorList weights, TensorList scores, TensorList chosen_count,
                               TensorList valid) {
  return with_python_errors(
      [&] { return weights_after_step(std::string(config), weights, scores, chosen_count, valid, dim); });
}

}  // namespace

TORCH_LIBRARY(sparsight, m) {
  m.def(
      "route(str config, Tensor tokens, SymInt images, Tensor[] weights, Tensor seed, Tensor? valid, "
      "Tensor? token_id, Tensor? target, str draw_names, Tensor[] draws) -> (Tensor gate, "
      "Tensor losses, Tensor logits, Tensor scores, Tensor token, Tensor expert, Tensor rank, Tensor kept, "
      "Tensor chosen_count)");
  m.def(
      "mix(str config, Tensor tokens, SymInt images, Tensor[] weights, Tensor? valid=None) -> (Tensor dispatch, "
      "Tensor combine, Tensor logits)");
  m.def(
      "routing_loss(str config, SymInt images=1, Tensor? logits=None, Tensor? noisy_logits=None, "
      "Tensor? noise_scale=None, Tensor? scores=None, Tensor? gate=None, Tensor? expert=None, Tensor? valid=None, "
      "Tensor? target=None, Tensor? threshold=None) -> Tensor");
  m.def(
      "routing_backward(int kind, str config, SymInt images, str draw_names, Tensor?[] inputs, Tensor?[] grads, "
      "bool[] needs) -> Tensor[]");
  m.def(
      "moe_mlp(Tensor tokens, Tensor expert, Tensor gate, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, "
      "str activation=\"gelu\", Tensor? token=None, Tensor? kept=None) -> Tensor");
  m.def(
      "moe_mlp_forward(Tensor tokens, Tensor expert, Tensor gate, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, "
      "str activation, Tensor? token, Tensor? kept, bool keep) -> (Tensor out, Tensor before)");
  m.def(
      "moe_mlp_backward(Tensor grad, Tensor tokens, Tensor expert, Tensor gate, Tensor w1, Tensor? b1, Tensor w2, "
      "Tensor? b2, str activation, Tensor? token, Tensor? kept, Tensor before, bool need_tokens, bool need_gate) -> "
      "(Tensor tokens, Tensor gate, Tensor w1, Tensor b1, Tensor w2, Tensor b2)");
  m.def(
      "router_after_step(str config, int dim, Tensor[] weights, Tensor[] scores, Tensor[] chosen_count, "
      "Tensor[] valid) -> Tensor[]");
  m.def("describe_router(str config, int dim) -> str", &describe);
  m.def("list_routers() -> str", &list_routers);
  m.def("version() -> str", [] { return std::string(SPARSIGHT_VERSION); });
  m.def("init_router(str config, int dim, int seed, str path) -> Tensor[]", &init);
}

namespace {

void add_kernels(torch::Library& m) {
  m.impl("route", &route);
  m.impl("mix", &mix);
  m.impl("routing_loss", &routing_loss);
  m.impl("routing_backward", &routing_backward);
  m.impl("moe_mlp", &mlp);
  m.impl("moe_mlp_forward", &mlp_forward);
  m.impl("moe_mlp_backward", &mlp_backward);
  m.impl("router_after_step", &after_step);
}

}  // namespace

TORCH_LIBRARY_IMPL(sparsight, CPU, m) { add_kernels(m); }
TORCH_LIBRARY_IMPL(sparsight, CUDA, m) { add_kernels(m); }
TORCH_LIBRARY_IMPL(sparsight, Autograd, m) {
  m.impl("route", &route_autograd);
  m.impl("mix", &mix_autograd);
  m.impl("routing_loss", &loss_autograd);
  m.impl("moe_mlp", &mlp_autograd);
}

}  // namespace sparsight::python
