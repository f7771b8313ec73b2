// The operators of dense layers: the MLP of a transformer block (mlp) and its self-attention (self_attention). Letters:
// moe/axes.md.
#include <ATen/ops/empty.h>

#include "python/csrc/backward_tensors.h"
#include "python/csrc/checked_arguments.h"
#include "python/csrc/operators.h"
#include "sparsight/ops/attention.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight::python {
namespace {

constexpr char kInput[] = "the input's";

// ---- mlp: one expert on all rows. Weights as those of torch.nn.Linear: w1 [F,D], b1 [F], w2 [D,F], b2 [D].

using DenseForward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const OptionalTensor&, const Tensor&,
                                                const OptionalTensor&, Text, bool);
using DenseBackward = std::vector<Tensor>(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                                          const Tensor&, const OptionalTensor&, Text, const Tensor&, bool, bool);

struct DenseMlp {
  Tensor rows;  // [N,D]
  ExpertRows map;
  ExpertMlpWeights weights;
  Activation activation;
};

DenseMlp dense_mlp(const Tensor& x, const Tensor& w1, const OptionalTensor& b1, const Tensor& w2,
                   const OptionalTensor& b2, Text activation) {
  if (w1.dim() != 2 || w2.dim() != 2 || w1.size(0) != w2.size(1) || w1.size(1) != w2.size(0))
    fail("mlp needs w1 [F,D] and w2 [D,F], as torch.nn.Linear has them; got ", w1.sizes(), " and ", w2.sizes());
  if (x.dim() == 0 || x.size(-1) != w1.size(1)) fail("mlp needs x [...,D] with D = ", w1.size(1), ", got ", x.sizes());
  const auto bias = [](const OptionalTensor& b, int64_t size, const char* name) {
    if (!b) return Tensor();
    if (b->dim() != 1 || b->size(0) != size) fail("mlp needs ", name, " [", size, "], got ", b->sizes());
    return b->contiguous().unsqueeze(0);
  };
  DenseMlp in;
  in.rows = x.reshape({-1, x.size(-1)}).contiguous();
  in.map = rows_in_place(in.rows, one_group(in.rows));
  in.weights = {w1.contiguous().t().unsqueeze(0), bias(b1, w1.size(0), "b1"), w2.contiguous().t().unsqueeze(0),
                bias(b2, w2.size(0), "b2")};
  in.activation = parse_activation(std::string(activation));
  check_weights(in.weights, in.rows.scalar_type(), in.rows.device());
  return in;
}

std::tuple<Tensor, Tensor> dense_mlp_forward(const Tensor& x, const Tensor& w1, const OptionalTensor& b1,
                                             const Tensor& w2, const OptionalTensor& b2, Text activation, bool keep) {
  return run_operator([&]() -> std::tuple<Tensor, Tensor> {
    const c10::AutoGradMode no_grad(false);
    const DenseMlp in = dense_mlp(x, w1, b1, w2, b2, activation);
    Tensor hidden;
    const Tensor out = expert_mlp_forward(in.rows, in.map, in.weights, in.activation, keep ? &hidden : nullptr);
    return {out.view(x.sizes()), or_nothing(hidden, x)};
  });
}

std::vector<Tensor> dense_mlp_backward(const Tensor& grad, const Tensor& x, const Tensor& w1, const OptionalTensor& b1,
                                       const Tensor& w2, const OptionalTensor& b2, Text activation,
                                       const Tensor& pre_activation, bool need_x, bool need_weights) {
  return run_operator([&]() -> std::vector<Tensor> {
    const c10::AutoGradMode no_grad(false);
    const DenseMlp in = dense_mlp(x, w1, b1, w2, b2, activation);
    check_saved(grad, "grad", x.sizes(), x, kInput);
    check_saved(pre_activation, "pre_activation", {in.rows.size(0), w1.size(0)}, x, kInput);
    const ExpertMlpGradients out =
        expert_mlp_backward(grad.reshape(in.rows.sizes()).contiguous(), in.rows, in.map, in.weights, in.activation,
                            pre_activation.contiguous(), {need_x, /*gate=*/false, need_weights});
    const auto matrix = [&](const Tensor& w) { return or_nothing(w.defined() ? w.squeeze(0).t() : w, x); };
    const auto vector = [&](const Tensor& b) { return or_nothing(b.defined() ? b.squeeze(0) : b, x); };
    const ExpertMlpWeights& w = out.weights;
    return {or_nothing(need_x ? out.tokens.view(x.sizes()) : Tensor(), x), matrix(w.w1), vector(w.b1), matrix(w.w2),
            vector(w.b2)};
  });
}

std::tuple<Tensor, Tensor> dense_mlp_below(const Tensor& x, const Tensor& w1, const OptionalTensor& b1,
                                           const Tensor& w2, const OptionalTensor& b2, Text activation, bool keep) {
  static const auto op = find_operator<DenseForward>("sparsight::mlp_forward");
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(x, w1, b1, w2, b2, activation, keep);
}

class DenseMlpFunction : public torch::autograd::Function<DenseMlpFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& w1, const OptionalTensor& b1,
                        const Tensor& w2, const OptionalTensor& b2, const std::string& activation) {
    auto [out, hidden] = dense_mlp_below(x, w1, b1, w2, b2, activation, /*keep=*/true);
    context->save_for_backward({x, w1, b1.value_or(Tensor()), w2, b2.value_or(Tensor()), hidden});
    context->saved_data["activation"] = activation;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("mlp has");
    const variable_list s = context->get_saved_variables();
    static const auto op = find_operator<DenseBackward>("sparsight::mlp_backward");
    const bool need_x = context->needs_input_grad(0);
    bool need_weights = false;
    for (size_t edge = 1, i = 1; i < 5; ++i)
      if (s[i].defined()) need_weights = context->needs_input_grad(edge++) || need_weights;
    const std::vector<Tensor> g = op.call(grads[0], s[0], s[1], optional(s[2]), s[3], optional(s[4]),
                                          context->saved_data["activation"].toStringRef(), s[5], need_x, need_weights);
    const auto where = [&](bool needed, size_t i) { return needed && s[i].defined() ? g[i] : Tensor(); };
    return {where(need_x, 0),       where(need_weights, 1), where(need_weights, 2),
            where(need_weights, 3), where(need_weights, 4), {}};
  }
};

Tensor dense_mlp_autograd(const Tensor& x, const Tensor& w1, const OptionalTensor& b1, const Tensor& w2,
                          const OptionalTensor& b2, Text activation) {
  if (!needs_graph({x, w1, b1.value_or(Tensor()), w2, b2.value_or(Tensor())}))
    return std::get<0>(dense_mlp_below(x, w1, b1, w2, b2, activation, /*keep=*/false));
  return DenseMlpFunction::apply(x, w1, b1, w2, b2, std::string(activation));
}

Tensor dense_mlp_kernel(const Tensor& x, const Tensor& w1, const OptionalTensor& b1, const Tensor& w2,
                        const OptionalTensor& b2, Text activation) {
  return std::get<0>(dense_mlp_below(x, w1, b1, w2, b2, activation, /*keep=*/false));
}

// ---- self_attention: ops/attention.h

using AttentionForwardSignature = std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool);
using AttentionBackwardSignature = Tensor(const Tensor&, const Tensor&, int64_t, const Tensor&, const Tensor&);

std::tuple<Tensor, Tensor> self_attention_forward(const Tensor& qkv, int64_t heads, bool keep) {
  return run_operator([&]() -> std::tuple<Tensor, Tensor> {
    const c10::AutoGradMode no_grad(false);
    check_attention(qkv, heads);
    const AttentionOutput out = attention_forward(qkv.contiguous(), heads, keep, qkv.size(1));
    const auto wide = qkv.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return {out.out, out.log_sum.defined() ? out.log_sum : at::empty({0}, qkv.options().dtype(wide))};
  });
}

Tensor self_attention_backward(const Tensor& grad, const Tensor& qkv, int64_t heads, const Tensor& out,
                               const Tensor& log_sum) {
  return run_operator([&] {
    const c10::AutoGradMode no_grad(false);
    check_attention(qkv, heads);
    const std::vector<int64_t> sizes = {qkv.size(0), qkv.size(1), qkv.size(2) / 3};
    check_saved(grad, "grad", sizes, qkv, kInput);
    check_saved(out, "out", sizes, qkv, kInput);
    if (log_sum.sizes() != at::IntArrayRef({qkv.size(0), heads, qkv.size(1)}))
      fail("log_sum must be [", qkv.size(0), ", ", heads, ", ", qkv.size(1), "], got ", log_sum.sizes());
    return attention_backward(grad.contiguous(), qkv.contiguous(), {out.contiguous(), log_sum.contiguous()});
  });
}

std::tuple<Tensor, Tensor> self_attention_below(const Tensor& qkv, int64_t heads, bool keep) {
  static const auto op = find_operator<AttentionForwardSignature>("sparsight::self_attention_forward");
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(qkv, heads, keep);
}

class SelfAttentionFunction : public torch::autograd::Function<SelfAttentionFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& qkv, int64_t heads) {
    auto [out, log_sum] = self_attention_below(qkv, heads, /*keep=*/true);
    context->save_for_backward({qkv, out, log_sum});
    context->saved_data["heads"] = heads;
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("self_attention has");
    const variable_list s = context->get_saved_variables();
    static const auto op = find_operator<AttentionBackwardSignature>("sparsight::self_attention_backward");
    return {op.call(grads[0], s[0], context->saved_data["heads"].toInt(), s[1], s[2]), {}};
  }
};

Tensor self_attention_autograd(const Tensor& qkv, int64_t heads) {
  if (!needs_graph({qkv})) return std::get<0>(self_attention_below(qkv, heads, /*keep=*/false));
  return SelfAttentionFunction::apply(qkv, heads);
}

Tensor self_attention_kernel(const Tensor& qkv, int64_t heads) {
  return std::get<0>(self_attention_below(qkv, heads, /*keep=*/false));
}

}  // namespace

void define_dense_operators(torch::Library& m) {
  m.def("mlp(Tensor x, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, str activation=\"gelu\") -> Tensor");
  m.def(
      "mlp_forward(Tensor x, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, str activation, bool keep) -> (Tensor out, "
      "Tensor pre_activation)");
  m.def(
      "mlp_backward(Tensor grad, Tensor x, Tensor w1, Tensor? b1, Tensor w2, Tensor? b2, str activation, "
      "Tensor pre_activation, bool need_x, bool need_weights) -> Tensor[]");
  m.def("self_attention(Tensor qkv, int heads) -> Tensor");
  m.def("self_attention_forward(Tensor qkv, int heads, bool keep) -> (Tensor out, Tensor log_sum)");
  m.def("self_attention_backward(Tensor grad, Tensor qkv, int heads, Tensor out, Tensor log_sum) -> Tensor");
}

void add_dense_kernels(torch::Library& m) {
  m.impl("mlp", &Checked<&dense_mlp_kernel>::call);
  m.impl("mlp_forward", &Checked<&dense_mlp_forward>::call);
  m.impl("mlp_backward", &Checked<&dense_mlp_backward>::call);
  m.impl("self_attention", &Checked<&self_attention_kernel>::call);
  m.impl("self_attention_forward", &Checked<&self_attention_forward>::call);
  m.impl("self_attention_backward", &Checked<&self_attention_backward>::call);
}

void add_dense_derivatives(torch::Library& m) {
  m.impl("mlp", &dense_mlp_autograd);
  m.impl("self_attention", &self_attention_autograd);
}

}  // namespace sparsight::python
