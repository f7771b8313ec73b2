// The routing operators: kernels that call routing_calls.h, and one autograd function for all of them.
#include <algorithm>

#include "python/csrc/checked_arguments.h"
#include "python/csrc/operators.h"
#include "python/csrc/routing_calls.h"

namespace sparsight::python {
namespace {

// The inputs of a call in one list, absent ones undefined.
struct Inputs {
  std::vector<Tensor> all;
  Inputs& add(const Tensor& x) {
    all.push_back(x);
    return *this;
  }
  Inputs& add(const OptionalTensor& x) {
    all.push_back(x.value_or(Tensor()));
    return *this;
  }
  Inputs& add(TensorList xs) {
    all.insert(all.end(), xs.begin(), xs.end());
    return *this;
  }
};

c10::List<OptionalTensor> optional_list(const std::vector<Tensor>& tensors) {
  c10::List<OptionalTensor> list;
  for (const Tensor& t : tensors) list.push_back(t.defined() ? OptionalTensor(t) : std::nullopt);
  return list;
}

std::vector<Tensor> tensor_vector(const c10::List<OptionalTensor>& list) {
  std::vector<Tensor> tensors;
  for (const OptionalTensor& t : list) tensors.push_back(t.value_or(Tensor()));
  return tensors;
}

// Calls an operator with its inputs from one list.
using CallBelow = variable_list (*)(Text config, const c10::SymInt& images, Text samples, const variable_list& inputs);

std::vector<Tensor> routing_backward(int64_t kind, Text config, int64_t images, Text samples,
                                     const c10::List<OptionalTensor>& inputs, const c10::List<OptionalTensor>& grads,
                                     const c10::List<bool>& needs) {
  return run_operator([&] {
    const std::vector<bool> wanted(needs.begin(), needs.end());
    return run_backward({static_cast<RoutingCallKind>(kind), config, images, samples, tensor_vector(inputs)},
                        tensor_vector(grads), wanted);
  });
}

class RoutingFunction : public torch::autograd::Function<RoutingFunction> {
 public:
  // present: the defined tensors of `inputs`, for autograd, which does not accept undefined ones.
  static variable_list forward(AutogradContext* context, TensorList present, const variable_list& inputs,
                               RoutingCallKind kind, const std::string& config, const c10::SymInt& images,
                               const std::string& samples, CallBelow call) {
    context->set_materialize_grads(false);
    context->save_for_backward(inputs);
    context->saved_data["kind"] = static_cast<int64_t>(kind);
    context->saved_data["config"] = config;
    context->saved_data["images"] = images;
    context->saved_data["samples"] = samples;
    context->saved_data["present"] = static_cast<int64_t>(present.size());
    const at::AutoDispatchBelowADInplaceOrView below;
    return call(config, images, samples, inputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    auto& saved = context->saved_data;
    const variable_list inputs = context->get_saved_variables();
    c10::List<bool> needs;
    std::vector<size_t> position(inputs.size());
    size_t present = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      position[i] = present;
      needs.push_back(inputs[i].defined() && context->needs_input_grad(present));
      present += inputs[i].defined();
    }
    static const auto op =
        find_operator<std::vector<Tensor>(int64_t, Text, c10::SymInt, Text, const c10::List<OptionalTensor>&,
                                          const c10::List<OptionalTensor>&, const c10::List<bool>&)>(
            "sparsight::routing_backward");
    const std::string config = saved["config"].toStringRef(), samples = saved["samples"].toStringRef();
    const std::vector<Tensor> found = op.call(saved["kind"].toInt(), config, saved["images"].toSymInt(), samples,
                                              optional_list(inputs), optional_list(grads), needs);
    variable_list result(present + 6);  // plus the arguments that are not tensors
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (needs[i]) result[position[i]] = found[next++];
    return result;
  }
};

variable_list routing_autograd(RoutingCallKind kind, Text config, const c10::SymInt& images, Text samples,
                               const variable_list& inputs, CallBelow call) {
  if (!needs_graph(inputs)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return call(config, images, samples, inputs);
  }
  variable_list present;
  for (const Tensor& t : inputs)
    if (t.defined()) present.push_back(t);
  return RoutingFunction::apply(TensorList(present), inputs, kind, std::string(config), images, std::string(samples),
                                call);
}

// ---- route

using Routed =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using RouteSignature = Routed(Text, const Tensor&, c10::SymInt, TensorList, const Tensor&, const OptionalTensor&,
                              const OptionalTensor&, const OptionalTensor&, Text, TensorList, const OptionalTensor&);

Routed routed(const variable_list& o) {
  return {o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11]};
}

Inputs route_inputs(const Tensor& tokens, TensorList weights, const Tensor& seed, const OptionalTensor& valid,
                    const OptionalTensor& token_id, const OptionalTensor& target, TensorList samples,
                    const OptionalTensor& priority) {
  return Inputs().add(tokens).add(seed).add(valid).add(token_id).add(target).add(priority).add(weights).add(samples);
}

Routed route(Text config, const Tensor& tokens, int64_t images, TensorList weights, const Tensor& seed,
             const OptionalTensor& valid, const OptionalTensor& token_id, const OptionalTensor& target,
             Text sample_names, TensorList samples, const OptionalTensor& priority) {
  return run_operator([&] {
    const Inputs in = route_inputs(tokens, weights, seed, valid, token_id, target, samples, priority);
    return routed(run({RoutingCallKind::route, config, images, sample_names, in.all}));
  });
}

variable_list route_below(Text config, const c10::SymInt& images, Text sample_names, const variable_list& in) {
  static const auto op = find_operator<RouteSignature>("sparsight::route");
  const auto named =
      static_cast<size_t>(sample_names.empty() ? 0 : 1 + std::count(sample_names.begin(), sample_names.end(), ','));
  const TensorList rest = TensorList(in).slice(6);
  const size_t count = std::min(named, rest.size());  // the kernel reports an error if there are too few
  const Routed r =
      op.call(config, in[0], images, rest.slice(0, rest.size() - count), in[1], optional(in[2]), optional(in[3]),
              optional(in[4]), sample_names, rest.slice(rest.size() - count), optional(in[5]));
  return std::apply([](const auto&... outputs) { return variable_list{outputs...}; }, r);
}

Routed route_autograd(Text config, const Tensor& tokens, c10::SymInt images, TensorList weights, const Tensor& seed,
                      const OptionalTensor& valid, const OptionalTensor& token_id, const OptionalTensor& target,
                      Text sample_names, TensorList samples, const OptionalTensor& priority) {
  const Inputs in = route_inputs(tokens, weights, seed, valid, token_id, target, samples, priority);
  return routed(routing_autograd(RoutingCallKind::route, config, images, sample_names, in.all, route_below));
}

// ---- mix

using Mixed = std::tuple<Tensor, Tensor, Tensor>;
using MixSignature = Mixed(Text, const Tensor&, c10::SymInt, TensorList, const OptionalTensor&);

Mixed mix(Text config, const Tensor& tokens, int64_t images, TensorList weights, const OptionalTensor& valid) {
  return run_operator([&] {
    const Inputs in = Inputs().add(tokens).add(valid).add(weights);
    const variable_list o = run({RoutingCallKind::mix, config, images, "", in.all});
    return Mixed{o[0], o[1], o[2]};
  });
}

variable_list mix_below(Text config, const c10::SymInt& images, Text, const variable_list& in) {
  static const auto op = find_operator<MixSignature>("sparsight::mix");
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

using LossSignature = Tensor(Text, c10::SymInt, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                             const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                             const OptionalTensor&, const OptionalTensor&, const OptionalTensor&);

Inputs loss_inputs(const OptionalTensor& logits, const OptionalTensor& noisy_logits, const OptionalTensor& noise_scale,
                   const OptionalTensor& scores, const OptionalTensor& gate, const OptionalTensor& expert,
                   const OptionalTensor& valid, const OptionalTensor& target, const OptionalTensor& threshold,
                   const OptionalTensor& token) {
  return Inputs()
      .add(logits)
      .add(noisy_logits)
      .add(noise_scale)
      .add(scores)
      .add(gate)
      .add(expert)
      .add(valid)
      .add(target)
      .add(threshold)
      .add(token);
}

Tensor routing_loss(Text config, int64_t images, const OptionalTensor& logits, const OptionalTensor& noisy_logits,
                    const OptionalTensor& noise_scale, const OptionalTensor& scores, const OptionalTensor& gate,
                    const OptionalTensor& expert, const OptionalTensor& valid, const OptionalTensor& target,
                    const OptionalTensor& threshold, const OptionalTensor& token) {
  return run_operator([&] {
    const Inputs in =
        loss_inputs(logits, noisy_logits, noise_scale, scores, gate, expert, valid, target, threshold, token);
    return run({RoutingCallKind::loss, config, images, "", in.all})[0];
  });
}

variable_list loss_below(Text config, const c10::SymInt& images, Text, const variable_list& in) {
  static const auto op = find_operator<LossSignature>("sparsight::routing_loss");
  return {op.call(config, images, optional(in[0]), optional(in[1]), optional(in[2]), optional(in[3]), optional(in[4]),
                  optional(in[5]), optional(in[6]), optional(in[7]), optional(in[8]), optional(in[9]))};
}

Tensor loss_autograd(Text config, c10::SymInt images, const OptionalTensor& logits, const OptionalTensor& noisy_logits,
                     const OptionalTensor& noise_scale, const OptionalTensor& scores, const OptionalTensor& gate,
                     const OptionalTensor& expert, const OptionalTensor& valid, const OptionalTensor& target,
                     const OptionalTensor& threshold, const OptionalTensor& token) {
  const Inputs in =
      loss_inputs(logits, noisy_logits, noise_scale, scores, gate, expert, valid, target, threshold, token);
  return routing_autograd(RoutingCallKind::loss, config, images, "", in.all, loss_below)[0];
}

}  // namespace

void add_routing_kernels(torch::Library& m) {
  m.impl("route", &Checked<&route>::call);
  m.impl("mix", &Checked<&mix>::call);
  m.impl("routing_loss", &Checked<&routing_loss>::call);
  m.impl("routing_backward", &Checked<&routing_backward>::call);
}

void add_routing_derivatives(torch::Library& m) {
  m.impl("route", &route_autograd);
  m.impl("mix", &mix_autograd);
  m.impl("routing_loss", &loss_autograd);
}

}  // namespace sparsight::python
