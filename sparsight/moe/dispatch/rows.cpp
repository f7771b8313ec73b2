#include "sparsight/moe/dispatch/rows.h"

#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/ref/rows.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void save_map(AutogradContext* context, const RowMap& map) {
  context->saved_data["tokens"] = map.tokens;
  context->saved_data["row_token"] = map.row_token;
  context->saved_data["token_rows"] = map.token_rows;
  context->saved_data["token_offsets"] = map.token_offsets;
}

RowMap saved_map(AutogradContext* context) {
  auto& saved = context->saved_data;
  return {saved["tokens"].toInt(), saved["row_token"].toTensor(), saved["token_rows"].toTensor(),
          saved["token_offsets"].toTensor()};
}

class GatherRows : public torch::autograd::Function<GatherRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tokens, const RowMap& map) {
    save_map(context, map);
    return gather_rows(tokens, {}, map);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    return {scatter_add_rows(grads[0], {}, saved_map(context)), {}};
  }
};

class CombineRows : public torch::autograd::Function<CombineRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& gate,
                            const RowMap& map) {
    save_map(context, map);
    context->save_for_backward({rows, gate});
    return scatter_add_rows(rows, gate, map);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const RowMap map = saved_map(context);
    const auto saved = context->get_saved_variables();
    at::Tensor rows_grad, gate_grad;
    if (context->needs_input_grad(0)) rows_grad = gather_rows(grads[0], saved[1], map);
    if (context->needs_input_grad(1)) gate_grad = dot_rows(saved[0], grads[0], map).to(saved[1].scalar_type());
    return {rows_grad, gate_grad, {}};
  }
};

}  // namespace

at::Tensor gather_rows(const at::Tensor& tokens, const RowMap& map) {
  return TwiceDifferentiable::wanted() ? ref::gather_rows(tokens, {}, map) : GatherRows::apply(tokens, map);
}

at::Tensor combine_rows(const at::Tensor& rows, const at::Tensor& row_gate, const RowMap& map) {
  return TwiceDifferentiable::wanted() ? ref::scatter_add_rows(rows, row_gate, map)
                                       : CombineRows::apply(rows, row_gate, map);
}

RowMap routing_map(const Routing& routing) { return map_rows(routing.token, routing.order, routing.tokens); }

at::Tensor row_gates(const Routing& routing) { return routing.gate.index_select(0, routing.order); }

}  // namespace sparsight
