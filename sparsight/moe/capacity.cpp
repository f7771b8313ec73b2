#include "sparsight/moe/capacity.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/bincount.h>
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

// [N]: each token's largest score among its choices, or their sum; 0 for a token without choices. The router's scores,
// as in V-MoE, not its gates: gates that are divided by their sum say nothing about how sure the router is.
std::vector<double> token_scores(const Routing& routing, bool sum) {
  const bool has_scores = routing.scores.defined() && routing.scores.size(0) == routing.tokens;
  const at::Tensor tokens = on_cpu(routing.token, at::kLong);
  const at::Tensor gates = on_cpu(has_scores ? at_assignments(routing, routing.scores) : routing.gate, at::kDouble);
  const int64_t* token = tokens.const_data_ptr<int64_t>();
  const double* gate = gates.const_data_ptr<double>();
  std::vector<double> score(static_cast<size_t>(routing.tokens), 0);
  for (int64_t a = 0; a < tokens.numel(); ++a) {
    double& s = score[static_cast<size_t>(token[a])];
    s = sum ? s + gate[a] : (std::isnan(gate[a]) ? gate[a] : std::max(s, gate[a]));
  }
  return score;
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

// The tokens of each group, in the order in which they get slots.
std::vector<std::vector<int64_t>> token_order(const Routing& routing, const std::string& priority) {
  std::vector<std::vector<int64_t>> order(static_cast<size_t>(routing.group_count));
  const at::Tensor groups = on_cpu(group_of_token(routing), at::kLong);
  const int64_t* group = groups.const_data_ptr<int64_t>();
  for (int64_t t = 0; t < routing.tokens; ++t) order[static_cast<size_t>(group[t])].push_back(t);
  if (priority == "none") return order;
  const std::vector<double> score =
      priority == "given" ? given_scores(routing) : token_scores(routing, priority == "sum_gates");
  const auto before = [&](int64_t a, int64_t b) {
    const double x = score[static_cast<size_t>(a)], y = score[static_cast<size_t>(b)];
    return x > y || (std::isnan(y) && !std::isnan(x));
  };
  for (std::vector<int64_t>& tokens : order) std::stable_sort(tokens.begin(), tokens.end(), before);
  return order;
}

// [G] int64: number of choices made by the tokens of each group.
at::Tensor choices_of_groups(const Routing& routing) {
  return at::bincount(group_of_token(routing).index_select(0, routing.token), {}, routing.group_count);
}

// Gates divided by the sum of their token's kept gates; tokens without any stay at 0.
at::Tensor renormalized(const Routing& routing) {
  const at::Tensor gate = routing.gate * routing.kept.to(routing.gate.scalar_type());
  const at::Tensor sum = at::zeros({routing.tokens}, gate.options()).index_add(0, routing.token, gate);
  return gate / at::where(sum > 0, sum, at::ones_like(sum)).index_select(0, routing.token);
}

}  // namespace

void CapacityOptions::declare(OptionSet& set) {
  set.real("factor", &factor, {0, 1e6},
           "capacity factor: tokens per expert, as a multiple of an even share of the assignments; 0: no limit")
      .live = true;
  set.real("eval_factor", &eval_factor, {-1, 1e6}, "capacity factor in evaluation; -1: as in training, 0: no limit")
      .live = true;
  set.choice("rounding", &rounding, {"ceil", "floor", "round", "floor_per_choice"},
             "how the capacity is rounded; floor_per_choice: k * floor(factor * ceil(tokens / experts))");
  set.integer("multiple", &multiple, {1, 65536}, "the rounded capacity is rounded up to a multiple of this");
  set.integer("minimum", &minimum, {1, 1 << 30}, "minimum capacity of an expert");
  set.flag("count_k", &count_k, "count k assignments per token in the even share (Switch counts one)");
  set.choice("priority", &priority, {"none", "max_gate", "sum_gates", "given"},
             "which tokens get a slot first: in token order, by the largest score of its choices or their sum (batch "
             "priority; "
             "scores are probabilities before renormalisation), or by the caller's scores");
  set.integer("group", &group, {0, 1 << 30},
              "number of images or tokens that share the experts' buffers, and over which grouped losses are computed; "
              "0: the whole batch");
  set.choice("group_unit", &group_unit, {"images", "tokens"}, "unit of group");
  set.flag("renormalize", &renormalize, "divide a token's kept gates by their sum after drops");
}

double capacity_factor(const CapacityOptions& options, bool training) {
  return training || options.eval_factor < 0 ? options.factor : options.eval_factor;
}

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

namespace {

// Before limits and rounding up to the multiple.
int64_t capacity_rows(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k) {
  constexpr double kRounding = 1e-9;  // 1.1 * 10 is 11.000000000000002 and must not become 12
  const double choices = options.count_k ? k : 1;
  int64_t rows = 0;
  if (options.rounding == "floor_per_choice") {
    const int64_t share = (tokens + experts - 1) / experts;
    rows = static_cast<int64_t>(
        std::floor(choices * std::floor(factor * static_cast<double>(share) * (1 + kRounding)) * (1 + kRounding)));
  } else {
    const double share = factor * choices * static_cast<double>(tokens) / static_cast<double>(experts);
    if (options.rounding == "ceil") rows = static_cast<int64_t>(std::ceil(share * (1 - kRounding)));
    if (options.rounding == "floor") rows = static_cast<int64_t>(std::floor(share * (1 + kRounding)));
    if (options.rounding == "round") rows = std::llround(share * (1 + kRounding));
  }
  return rows;
}

int64_t up_to_multiple(int64_t rows, const CapacityOptions& options) {
  return (std::max(rows, options.minimum) + options.multiple - 1) / options.multiple * options.multiple;
}

}  // namespace

int64_t expert_capacity(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k) {
  return up_to_multiple(std::min(capacity_rows(options, factor, tokens, experts, k), tokens), options);
}

int64_t buffer_capacity(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k) {
  return up_to_multiple(capacity_rows(options, factor, tokens, experts, k), options);
}

void apply_capacity(Routing& routing, const CapacityOptions& options, double factor) {
  if (factor == 0 || routing.per_token == 0) return;
  const at::Tensor sizes = on_cpu(group_sizes(routing), at::kLong);
  const at::Tensor made = on_cpu(choices_of_groups(routing), at::kLong);
  at::Tensor capacity = at::empty_like(sizes);
  for (int64_t g = 0; g < sizes.numel(); ++g) {
    const int64_t tokens = sizes.const_data_ptr<int64_t>()[g];
    const double average =
        static_cast<double>(made.const_data_ptr<int64_t>()[g]) / static_cast<double>(std::max<int64_t>(1, tokens));
    const double k = routing.varying ? average : static_cast<double>(routing.per_token);
    capacity.data_ptr<int64_t>()[g] = expert_capacity(options, factor, tokens, routing.experts, k);
  }

  const at::Tensor experts = on_cpu(routing.expert, at::kLong), ranks = on_cpu(routing.rank, at::kLong),
                   tokens = on_cpu(routing.token, at::kLong);
  const int64_t *expert = experts.const_data_ptr<int64_t>(), *rank = ranks.const_data_ptr<int64_t>(),
                *token = tokens.const_data_ptr<int64_t>(), *limit = capacity.const_data_ptr<int64_t>();
  const int64_t assignments = experts.numel();
  // next[t]: the next assignment of token t to get a slot; ends where those of the next token begin.
  std::vector<int64_t> begin(static_cast<size_t>(routing.tokens + 1), 0);
  for (int64_t a = 0; a < assignments; ++a) {
    SPARSIGHT_CHECK(a == 0 || token[a] > token[a - 1] || (token[a] == token[a - 1] && rank[a] > rank[a - 1]));
    ++begin[static_cast<size_t>(token[a] + 1)];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);

  at::Tensor positions = at::empty({assignments}, at::kLong), kept = at::empty({assignments}, at::kBool);
  int64_t* position = positions.data_ptr<int64_t>();
  bool* keep = kept.data_ptr<bool>();
  const std::vector<std::vector<int64_t>> order = token_order(routing, options.priority);
  std::vector<int64_t> fill(static_cast<size_t>(routing.experts));
  for (size_t g = 0; g < order.size(); ++g) {
    std::fill(fill.begin(), fill.end(), 0);
    for (int64_t q = 0; q < routing.per_token; ++q)
      for (const int64_t asking : order[g]) {
        const auto t = static_cast<size_t>(asking);
        const int64_t a = next[t];
        if (a == begin[t + 1] || rank[a] != q) continue;
        ++next[t];
        position[a] = fill[static_cast<size_t>(expert[a])]++;
        keep[a] = position[a] < limit[g];
      }
  }
  const auto device = routing.expert.device();
  routing.capacity = capacity.to(device);
  routing.position = positions.to(device);
  routing.kept = kept.to(device);
  if (options.renormalize) routing.gate = renormalized(routing);
  finish_routing(routing);
}

}  // namespace sparsight
