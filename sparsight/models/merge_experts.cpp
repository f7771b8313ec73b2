#include "sparsight/models/merge_experts.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/routers/balanced_assignment.h"

namespace sparsight {
namespace {

// All weights of each unit, in every tensor of its layer: [F,X] fp64. expert: the tensors of one expert, without the
// axis of experts.
at::Tensor unit_weights(const ExpertParameters& expert, const HiddenUnits& units) {
  std::vector<at::Tensor> columns;
  for (const HiddenUnits::Side& side : units.sides) {
    const at::Tensor by_unit = expert.at(side.tensor).to(torch::kDouble).movedim(side.axis - 1, 0);
    const int64_t count = by_unit.size(0) / side.parts;
    columns.push_back(by_unit.reshape({side.parts, count, -1}).transpose(0, 1).reshape({count, -1}));
  }
  return at::cat(columns, 1);
}

ExpertParameters one_expert(const ExpertParameters& all, const std::vector<HiddenUnits>& hidden, int64_t expert) {
  ExpertParameters one;
  for (const HiddenUnits& units : hidden)
    for (const HiddenUnits::Side& side : units.sides) one[side.tensor] = all.at(side.tensor).detach().select(0, expert);
  return one;
}

double agreement(const at::Tensor& reference, const at::Tensor& other, const at::Tensor& order) {
  return (reference * other.index_select(0, order)).sum().item<double>();
}

}  // namespace

at::Tensor output_similarity(const at::Tensor& outputs) {
  SPARSIGHT_CHECK(outputs.dim() == 3);
  const at::Tensor rows = outputs.detach().to(torch::kDouble).flatten(1);
  const at::Tensor unit = rows / rows.norm(2, 1, /*keepdim=*/true).clamp_min(1e-300);
  return unit.matmul(unit.t());
}

std::vector<int64_t> nearest_kept(const at::Tensor& similarity, const std::vector<bool>& kept) {
  const int64_t experts = std::ssize(kept);
  SPARSIGHT_CHECK(similarity.sizes() == at::IntArrayRef({experts, experts}));
  const at::Tensor values = similarity.to(torch::kCPU, torch::kDouble).contiguous();
  const double* const value = values.const_data_ptr<double>();
  std::vector<int64_t> nearest;
  for (int64_t e = 0; e < experts; ++e) {
    int64_t best = kept[static_cast<size_t>(e)] ? e : -1;
    for (int64_t other = 0; other < experts && !kept[static_cast<size_t>(e)]; ++other)
      if (kept[static_cast<size_t>(other)] && (best < 0 || value[e * experts + other] > value[e * experts + best]))
        best = other;
    SPARSIGHT_CHECK(best >= 0);
    nearest.push_back(best);
  }
  return nearest;
}

at::Tensor match_units(const at::Tensor& reference, const at::Tensor& other) {
  SPARSIGHT_CHECK(reference.dim() == 2 && reference.sizes() == other.sizes());
  return balanced_assignment(reference.matmul(other.t()));  // as many rows as columns: one unit for each
}

at::Tensor reorder_units(const at::Tensor& tensor, const std::string& name, const std::vector<HiddenUnits>& hidden,
                         const UnitOrder& order) {
  SPARSIGHT_CHECK(order.size() == hidden.size());
  at::Tensor reordered = tensor;
  for (size_t layer = 0; layer < hidden.size(); ++layer)
    for (const HiddenUnits::Side& side : hidden[layer].sides) {
      if (side.tensor != name) continue;
      std::vector<at::Tensor> parts;
      for (int64_t part = 0; part < side.parts; ++part) parts.push_back(order[layer] + part * order[layer].size(0));
      reordered = reordered.index_select(side.axis - 1, at::cat(parts));
    }
  return reordered;
}

UnitOrder match_hidden_units(const ExpertParameters& all, const std::vector<HiddenUnits>& hidden, int64_t reference,
                             int64_t other) {
  constexpr int kMaxSweeps = 20;
  const ExpertParameters target = one_expert(all, hidden, reference), moved = one_expert(all, hidden, other);
  UnitOrder order;
  for (const HiddenUnits& units : hidden) order.push_back(at::arange(unit_weights(moved, units).size(0), torch::kLong));
  const UnitOrder in_place = order;
  bool better = true;
  for (int sweep = 0; sweep < kMaxSweeps && better; ++sweep) {
    better = false;
    for (size_t layer = 0; layer < hidden.size(); ++layer) {
      UnitOrder others = order;
      others[layer] = in_place[layer];
      ExpertParameters given;
      for (const auto& [name, tensor] : moved) given[name] = reorder_units(tensor, name, hidden, others);
      const at::Tensor wanted = unit_weights(target, hidden[layer]), units = unit_weights(given, hidden[layer]);
      const at::Tensor found = match_units(wanted, units);
      if (agreement(wanted, units, found) <= agreement(wanted, units, order[layer])) continue;
      order[layer] = found;
      better = true;
    }
  }
  return order;
}

at::Tensor weighted_mean(const std::vector<at::Tensor>& tensors, const std::vector<double>& weights) {
  SPARSIGHT_CHECK(tensors.size() == weights.size());
  double total = 0;
  int64_t counted = 0;
  size_t last = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    SPARSIGHT_CHECK(weights[i] >= 0);
    if (weights[i] == 0) continue;
    total += weights[i], last = i, ++counted;
  }
  SPARSIGHT_CHECK(counted > 0);
  if (counted == 1) return tensors[last];
  at::Tensor sum = at::zeros(tensors[last].sizes(), torch::kDouble);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (weights[i] > 0) sum = sum + tensors[i].detach().to(torch::kDouble) * (weights[i] / total);
  return sum.to(tensors[last].scalar_type());
}

}  // namespace sparsight
