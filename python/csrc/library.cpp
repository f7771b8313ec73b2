// The operators torch.ops.sparsight.*: their schemas, kernels and derivatives. Their fake kernels are in
// sparsight/_library.py. What they compute is documented in routing_calls.h, expert_ops.h, packed_ops.h,
// dense_operators.cpp, attack_operator.h and router_setup.h.
#include "python/csrc/attack_operator.h"
#include "python/csrc/checked_arguments.h"
#include "python/csrc/expert_ops.h"
#include "python/csrc/loaded_module.h"
#include "python/csrc/operators.h"
#include "python/csrc/packed_ops.h"
#include "python/csrc/router_setup.h"

namespace sparsight::python {
namespace {

// ---- moe_mlp

using Kept = std::tuple<Tensor, Tensor>;
using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using ForwardSignature = Kept(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                              const Tensor&, const OptionalTensor&, Text, const OptionalTensor&, const OptionalTensor&,
                              bool);
using BackwardSignature = Gradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                    const OptionalTensor&, const Tensor&, const OptionalTensor&, Text,
                                    const OptionalTensor&, const OptionalTensor&, const Tensor&, bool, bool, bool);

Kept mlp_forward(const Tensor& tokens, const Tensor& expert, const Tensor& gate, const Tensor& w1,
                 const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2, Text activation,
                 const OptionalTensor& token, const OptionalTensor& kept, bool keep) {
  return run_operator([&] {
    return moe_mlp_forward({{tokens, expert, gate, token, kept}, w1, b1, w2, b2, activation}, keep);
  });
}

Gradients mlp_backward(const Tensor& grad, const Tensor& tokens, const Tensor& expert, const Tensor& gate,
                       const Tensor& w1, const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2,
                       Text activation, const OptionalTensor& token, const OptionalTensor& kept,
                       const Tensor& pre_activation, bool need_tokens, bool need_gate, bool need_weights) {
  return run_operator([&] {
    return moe_mlp_backward(grad, {{tokens, expert, gate, token, kept}, w1, b1, w2, b2, activation}, pre_activation,
                            need_tokens, need_gate, need_weights);
  });
}

Tensor mlp_below(const Tensor& tokens, const Tensor& expert, const Tensor& gate, const Tensor& w1,
                 const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2, Text activation,
                 const OptionalTensor& token, const OptionalTensor& kept, Tensor* pre_activation) {
  static const auto op = find_operator<ForwardSignature>("sparsight::moe_mlp_forward");
  const at::AutoDispatchBelowADInplaceOrView below;
  auto [out, hidden] =
      op.call(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, pre_activation != nullptr);
  if (pre_activation) *pre_activation = hidden;
  return out;
}

class MoeMlpFunction : public torch::autograd::Function<MoeMlpFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& tokens, const Tensor& expert, const Tensor& gate,
                        const Tensor& w1, const OptionalTensor& b1, const Tensor& w2, const OptionalTensor& b2,
                        const std::string& activation, const OptionalTensor& token, const OptionalTensor& kept) {
    Tensor pre_activation;
    Tensor out = mlp_below(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, &pre_activation);
    context->save_for_backward({tokens, expert, gate, w1, b1.value_or(Tensor()), w2, b2.value_or(Tensor()),
                                token.value_or(Tensor()), kept.value_or(Tensor()), pre_activation});
    context->saved_data["activation"] = activation;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const variable_list s = context->get_saved_variables();
    const std::string activation = context->saved_data["activation"].toStringRef();
    static const auto op = find_operator<BackwardSignature>("sparsight::moe_mlp_backward");
    const bool need_tokens = context->needs_input_grad(0), need_gate = context->needs_input_grad(2);
    bool need_weights = false;
    for (size_t edge = 3, i = 3; i < 7; ++i)
      if (s[i].defined()) need_weights = context->needs_input_grad(edge++) || need_weights;
    const auto [tokens, gate, w1, b1, w2, b2] =
        op.call(grads[0], s[0], s[1], s[2], s[3], optional(s[4]), s[5], optional(s[6]), activation, optional(s[7]),
                optional(s[8]), s[9], need_tokens, need_gate, need_weights);
    const auto where = [](bool there, const Tensor& x) { return there ? x : Tensor(); };
    return {where(need_tokens, tokens),
            {},
            where(need_gate, gate),
            where(need_weights, w1),
            where(need_weights && s[4].defined(), b1),
            where(need_weights, w2),
            where(need_weights && s[6].defined(), b2),
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

// ---- operators without a derivative

std::tuple<std::vector<Tensor>, std::string> pack_mlp(const Tensor& w1, const OptionalTensor& b1, const Tensor& w2,
                                                      const OptionalTensor& b2, Text type) {
  return run_operator([&] { return pack_moe_mlp(w1, b1, w2, b2, type); });
}

Tensor packed_mlp(const Tensor& tokens, const Tensor& expert, const Tensor& gate, TensorList packed, Text type,
                  Text order, int64_t hidden, Text activation, const OptionalTensor& token,
                  const OptionalTensor& kept) {
  return run_operator([&] {
    return packed_moe_mlp({tokens, expert, gate, token, kept}, {packed, type, order, hidden}, activation);
  });
}

Tensor packed_mlp_autograd(const Tensor& tokens, const Tensor& expert, const Tensor& gate, TensorList packed, Text type,
                           Text order, int64_t hidden, Text activation, const OptionalTensor& token,
                           const OptionalTensor& kept) {
  if (needs_graph({tokens, gate}))
    fail("packed experts have no gradients; call them under torch.no_grad() or torch.inference_mode()");
  static const auto op = find_operator<decltype(packed_mlp)>("sparsight::packed_moe_mlp");
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(tokens, expert, gate, packed, type, order, hidden, activation, token, kept);
}

std::string describe(Text config, int64_t dim) {
  return run_operator([&] { return describe_router(std::string(config), dim); });
}

std::vector<Tensor> init(Text config, int64_t dim, int64_t seed, Text path) {
  return run_operator([&] { return initial_weights(std::string(config), dim, seed, std::string(path)); });
}

std::vector<Tensor> post_step_update(Text config, int64_t dim, TensorList weights, TensorList scores,
                                     TensorList chosen_count, TensorList valid, TensorList group_scores,
                                     TensorList group_count) {
  return run_operator([&] {
    return weights_after_update(std::string(config), dim, weights,
                                {scores, chosen_count, valid, group_scores, group_count});
  });
}

}  // namespace

TORCH_LIBRARY(sparsight, m) {
  m.def(
      "route(str config, Tensor tokens, SymInt images, Tensor[] weights, Tensor seed, Tensor? valid, "
      "Tensor? token_id, Tensor? target, str sample_names, Tensor[] samples, Tensor? priority=None) -> (Tensor gate, "
      "Tensor losses, Tensor logits, Tensor scores, Tensor token, Tensor expert, Tensor rank, Tensor kept, "
      "Tensor chosen_count, Tensor group_scores, Tensor group_chosen, Tensor metrics)");
  m.def(
      "mix(str config, Tensor tokens, SymInt images, Tensor[] weights, Tensor? valid=None) -> (Tensor dispatch, "
      "Tensor combine, Tensor logits)");
  m.def(
      "routing_loss(str config, SymInt images=1, Tensor? logits=None, Tensor? noisy_logits=None, "
      "Tensor? noise_scale=None, Tensor? scores=None, Tensor? gate=None, Tensor? expert=None, Tensor? valid=None, "
      "Tensor? target=None, Tensor? threshold=None, Tensor? token=None) -> Tensor");
  m.def(
      "routing_backward(int kind, str config, SymInt images, str sample_names, Tensor?[] inputs, Tensor?[] grads, "
      "bool[] needs) -> Tensor[]");
  m.def(
      "moe_mlp(Tensor tokens, Tensor expert, Tensor gate, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, "
      "str activation=\"gelu\", Tensor? token=None, Tensor? kept=None) -> Tensor");
  m.def(
      "moe_mlp_forward(Tensor tokens, Tensor expert, Tensor gate, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, "
      "str activation, Tensor? token, Tensor? kept, bool keep) -> (Tensor out, Tensor pre_activation)");
  m.def(
      "moe_mlp_backward(Tensor grad, Tensor tokens, Tensor expert, Tensor gate, Tensor w1, Tensor? b1, Tensor w2, "
      "Tensor? b2, str activation, Tensor? token, Tensor? kept, Tensor pre_activation, bool need_tokens, bool "
      "need_gate, "
      "bool need_weights=True) -> "
      "(Tensor tokens, Tensor gate, Tensor w1, Tensor b1, Tensor w2, Tensor b2)");
  m.def("pack_moe_mlp(Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, str type) -> (Tensor[] packed, str order)");
  m.def(
      "packed_moe_mlp(Tensor tokens, Tensor expert, Tensor gate, Tensor[] packed, str type, str order, int hidden, "
      "str activation=\"gelu\", Tensor? token=None, Tensor? kept=None) -> Tensor");
  m.def(
      "router_post_step_update(str config, int dim, Tensor[] weights, Tensor[] scores, Tensor[] chosen_count, "
      "Tensor[] valid, Tensor[] group_scores, Tensor[] group_count) -> Tensor[]");
  m.def("describe_router(str config, int dim) -> str", &describe);
  m.def("list_routers() -> str", &list_routers);
  m.def("list_losses() -> str", &list_losses);
  m.def("version() -> str", [] { return std::string(SPARSIGHT_VERSION); });
  define_dense_operators(m);
  define_attack_operators(m);
  define_loaded_module(m);
  m.def("init_router(str config, int dim, int seed, str path) -> Tensor[]", &init);
}

namespace {

void add_kernels(torch::Library& m) {
  add_routing_kernels(m);
  add_dense_kernels(m);
  m.impl("moe_mlp", &Checked<&mlp>::call);
  m.impl("moe_mlp_forward", &Checked<&mlp_forward>::call);
  m.impl("moe_mlp_backward", &Checked<&mlp_backward>::call);
  m.impl("pack_moe_mlp", &Checked<&pack_mlp>::call);
  m.impl("packed_moe_mlp", &Checked<&packed_mlp>::call);
  m.impl("router_post_step_update", &Checked<&post_step_update>::call);
}

}  // namespace

TORCH_LIBRARY_IMPL(sparsight, CPU, m) { add_kernels(m); }
TORCH_LIBRARY_IMPL(sparsight, CUDA, m) { add_kernels(m); }
TORCH_LIBRARY_IMPL(sparsight, Autograd, m) {
  add_routing_derivatives(m);
  add_dense_derivatives(m);
  m.impl("moe_mlp", &mlp_autograd);
  m.impl("packed_moe_mlp", &packed_mlp_autograd);
}

}  // namespace sparsight::python
