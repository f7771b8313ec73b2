#include "sparsight/moe/capacity.h"

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/expert_picks.h"

namespace sparsight {
namespace {

at::Tensor on_cpu(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.detach().to(at::kCPU, type).contiguous();
}

// [A] fp64: the router's scores of the choices, as in V-MoE, not its gates: gates that are divided by their sum say
// nothing about how sure the router is.
at::Tensor choice_scores(const Routing& routing) {
  const bool has_scores = routing.scores.defined() && routing.scores.size(0) == routing.tokens;
  return on_cpu(has_scores ? at_assignments(routing, routing.scores) : routing.gate, at::kDouble);
}

// [N]: the caller's scores.
std::vector<double> given_scores(const Routing& routing) {
  if (!routing.priority.defined())
    fail_usage(
        "[capacity] priority = \"given\" needs a priority for each token, got none; pass RoutingContext::priority (the "
        "tensor \"priority\" of sparsight moe, priority= in Python), or choose max_gate or sum_gates");
  SPARSIGHT_CHECK(routing.priority.dim() == 1 && routing.priority.size(0) == routing.tokens);
  const at::Tensor scores = on_cpu(routing.priority, at::kDouble);
  const double* first = scores.const_data_ptr<double>();
  return std::vector<double>(first, first + scores.numel());
}

// Gates divided by the sum of their token's kept gates; tokens without any stay at 0.
at::Tensor renormalized(const Routing& routing) {
  const at::Tensor gate = routing.gate * routing.kept.to(routing.gate.scalar_type());
  const at::Tensor sum = at::zeros({routing.tokens}, gate.options()).index_add(0, routing.token, gate);
  return gate / at::where(sum > 0, sum, at::ones_like(sum)).index_select(0, routing.token);
}

}  // namespace

void set_capacity_groups(Routing& routing, const CapacityOptions& options, const at::Tensor& image,
                         const at::Tensor& group) {
  const TokenLayout& layout = routing.layout;
  const bool by_tokens = options.group_unit == "tokens";
  routing.group = at::Tensor();
  routing.group_count = 1;
  if (!group.defined() && options.group == 0) return;
  if (!group.defined() && !image.defined())
    return set_consecutive_groups(routing, by_tokens ? options.group : options.group * layout.per_image);
  at::Tensor number = group;  // arbitrary group ids, one per image or per token
  if (!number.defined()) {
    const at::Tensor counted = by_tokens ? token_numbers(layout, image) : image;
    number = counted.floor_divide(options.group);
  }
  const auto [distinct, index, counts] = at::_unique2(number, /*sorted=*/true, /*return_inverse=*/true);
  if (distinct.numel() <= 1) return;
  routing.group_count = distinct.numel();
  routing.group = index.numel() == routing.tokens && by_tokens && !group.defined()
                      ? index
                      : index.repeat_interleave(layout.per_image);
}

void apply_capacity(Routing& routing, const CapacityOptions& options, double factor) {
  if (factor == 0 || routing.per_token == 0) return;
  const at::Tensor sizes = on_cpu(group_sizes(routing), at::kLong), groups = on_cpu(group_of_token(routing), at::kLong),
                   experts = on_cpu(routing.expert, at::kLong), ranks = on_cpu(routing.rank, at::kLong),
                   tokens = on_cpu(routing.token, at::kLong);
  const int64_t assignments = experts.numel();
  engine::SlotRequests requests{.tokens = routing.tokens,
                                .experts = routing.experts,
                                .assignments = assignments,
                                .per_token = routing.per_token,
                                .varying = routing.varying,
                                .token = tokens.const_data_ptr<int64_t>(),
                                .expert = experts.const_data_ptr<int64_t>(),
                                .rank = ranks.const_data_ptr<int64_t>(),
                                .groups = routing.group_count,
                                .group = groups.const_data_ptr<int64_t>(),
                                .group_sizes = sizes.const_data_ptr<int64_t>()};
  std::vector<double> priority;
  if (options.priority == "given") {
    priority = given_scores(routing);
  } else if (options.priority != "none") {
    priority.resize(static_cast<size_t>(routing.tokens));
    engine::token_priority(requests, choice_scores(routing).const_data_ptr<double>(), options.priority == "sum_gates",
                           priority.data());
  }
  if (options.priority != "none") requests.priority = priority.data();
  const at::Tensor capacity = at::empty_like(sizes), positions = at::empty({assignments}, at::kLong),
                   kept = at::empty({assignments}, at::kBool);
  engine::assign_slots(options, factor, requests, capacity.data_ptr<int64_t>(), positions.data_ptr<int64_t>(),
                       kept.data_ptr<bool>());
  const auto device = routing.expert.device();
  routing.capacity = capacity.to(device);
  routing.position = positions.to(device);
  keep_only(routing, kept.to(device));
  if (options.renormalize) routing.gate = renormalized(routing);
}

}  // namespace sparsight
