#include "sparsight/moe/experts.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/experts/recompute.h"

namespace sparsight {

at::Tensor Experts::forward(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) {
  if (!recompute_) return compute(rows, offsets, context);
  return recomputed(*this, {rows},
                    [this, offsets, context](const auto& in) { return compute(in[0], offsets, context); });
}

std::unique_ptr<engine::Experts> Experts::compile(const engine::WeightForm&) const {
  fail("these experts have no form without tensors: their kind has no compile()");
}

ExpertTensors Experts::expert_tensors() const {
  return {.refusal = "their kind does not say which tensors belong to which expert (Experts::expert_tensors)"};
}

RowContext Experts::row_context(const Routing& routing, const ExpertContext& context) const {
  RowContext of_rows{context.mode, context.random, context.path, {}};
  if (!is_stochastic(context.mode)) return of_rows;
  const at::Tensor token = token_numbers(routing.layout, context.image).to(routing.token.device());
  const at::Tensor number = token.index_select(0, routing.token) * routing.experts + routing.expert;
  of_rows.number = number.index_select(0, routing.order);
  return of_rows;
}

at::Tensor Experts::apply_routing(const at::Tensor& tokens, const Routing& routing, const ExpertContext& context) {
  const RowMap map = routing_map(routing);
  const at::Tensor offsets = routing.offsets;
  const RowContext of_rows = row_context(routing, context);
  // in: tokens, gates of the rows
  const TensorFunction run = [this, map, offsets, of_rows](const std::vector<at::Tensor>& in) {
    return combine_rows(compute(gather_rows(in[0], map), offsets, of_rows), in[1], map);
  };
  const std::vector<at::Tensor> inputs{tokens, row_gates(routing)};
  return recompute_ ? recomputed(*this, inputs, run) : run(inputs);
}

Cost Experts::cost(const ExpertUse& use) const {
  Cost expert;
  int64_t all = 0;
  for (const at::Tensor& p : parameters()) {
    const int64_t of_each = p.numel() / use.experts;
    expert = expert + parameters_cost(of_each);
    if (p.dim() >= 3) expert.multiply_adds += of_each;
    all += p.numel();
  }
  expert.assumed = true;
  Cost cost = experts_cost(expert, use);
  cost.parameters = all;
  return cost;
}

}  // namespace sparsight
