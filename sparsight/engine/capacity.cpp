#include "sparsight/engine/capacity.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/kernels/memory/scratch.h"

namespace sparsight {

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

namespace engine {
namespace {

using Numbers = std::pmr::vector<int64_t>;
using Lists = std::pmr::vector<Numbers>;

// The tokens of each group, in the order in which they get slots.
Lists token_order(const SlotRequests& requests) {
  Lists order(static_cast<size_t>(requests.groups), cpu::scratch());
  for (int64_t t = 0; t < requests.tokens; ++t)
    order[requests.group ? static_cast<size_t>(requests.group[t]) : 0].push_back(t);
  if (!requests.priority) return order;
  const auto before = [&](int64_t a, int64_t b) {
    const double x = requests.priority[a], y = requests.priority[b];
    return x > y || (std::isnan(y) && !std::isnan(x));
  };
  for (Numbers& tokens : order)
    std::sort(tokens.begin(), tokens.end(),
              [&](int64_t a, int64_t b) { return before(a, b) || (!before(b, a) && a < b); });
  return order;
}

// Choices made by the tokens of each group.
Numbers choices_of_groups(const SlotRequests& requests) {
  Numbers choices(static_cast<size_t>(requests.groups), 0, cpu::scratch());
  for (int64_t a = 0; a < requests.assignments; ++a)
    ++choices[requests.group ? static_cast<size_t>(requests.group[requests.token[a]]) : 0];
  return choices;
}

}  // namespace

void assign_slots(const CapacityOptions& options, double factor, const SlotRequests& requests, int64_t* capacity,
                  int64_t* position, bool* kept) {
  const Numbers made = choices_of_groups(requests);
  for (int64_t g = 0; g < requests.groups; ++g) {
    const int64_t tokens = requests.group_sizes ? requests.group_sizes[g] : requests.tokens;
    const double average =
        static_cast<double>(made[static_cast<size_t>(g)]) / static_cast<double>(std::max<int64_t>(1, tokens));
    const double k = requests.varying ? average : static_cast<double>(requests.per_token);
    capacity[g] = expert_capacity(options, factor, tokens, requests.experts, k);
  }
  const int64_t *token = requests.token, *rank = requests.rank, *expert = requests.expert;
  // next[t]: the next assignment of token t to get a slot; ends where those of the next token begin.
  Numbers begin(static_cast<size_t>(requests.tokens + 1), 0, cpu::scratch());
  for (int64_t a = 0; a < requests.assignments; ++a) {
    SPARSIGHT_CHECK(a == 0 || token[a] > token[a - 1] || (token[a] == token[a - 1] && rank[a] > rank[a - 1]));
    ++begin[static_cast<size_t>(token[a] + 1)];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  Numbers next(begin.begin(), begin.end() - 1, cpu::scratch());

  const Lists order = token_order(requests);
  Numbers fill(static_cast<size_t>(requests.experts), cpu::scratch());
  for (size_t g = 0; g < order.size(); ++g) {
    std::fill(fill.begin(), fill.end(), 0);
    for (int64_t q = 0; q < requests.per_token; ++q)
      for (const int64_t asking : order[g]) {
        const auto t = static_cast<size_t>(asking);
        const int64_t a = next[t];
        if (a == begin[t + 1] || rank[a] != q) continue;
        ++next[t];
        position[a] = fill[static_cast<size_t>(expert[a])]++;
        kept[a] = position[a] < capacity[g];
      }
  }
}

void token_priority(const SlotRequests& requests, const double* score, bool sum, double* priority) {
  std::fill_n(priority, requests.tokens, 0.0);
  for (int64_t a = 0; a < requests.assignments; ++a) {
    double& of_token = priority[requests.token[a]];
    of_token = sum ? of_token + score[a] : (std::isnan(score[a]) ? score[a] : std::max(of_token, score[a]));
  }
}

namespace {

// The groups of tokens that share the experts' buffers: their numbers [N], 0 .. G-1, and sizes [G].
struct TokenGroups {
  Numbers of_token, sizes;  // of_token: empty for one group
};

TokenGroups token_groups(const TokenLayout& layout, const CapacityOptions& options, const int64_t* image,
                         const int64_t* group) {
  const int64_t tokens = layout.images * layout.per_image;
  if ((!group && options.group == 0) || tokens == 0)
    return {Numbers(cpu::scratch()), Numbers({tokens}, cpu::scratch())};
  Numbers number(static_cast<size_t>(tokens), cpu::scratch());
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t in_batch = t / layout.per_image, of_image = image ? image[in_batch] : in_batch;
    const bool by_tokens = options.group_unit == "tokens";
    number[static_cast<size_t>(t)] =
        group ? group[in_batch]
              : (by_tokens ? of_image * layout.per_image + t % layout.per_image : of_image) / options.group;
  }
  Numbers distinct(number, cpu::scratch());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  TokenGroups groups{std::move(number), Numbers(distinct.size(), 0, cpu::scratch())};
  for (int64_t& of_token : groups.of_token) {
    of_token = std::lower_bound(distinct.begin(), distinct.end(), of_token) - distinct.begin();
    ++groups.sizes[static_cast<size_t>(of_token)];
  }
  return groups;
}

// Gates divided by the sum of their token's kept gates; tokens without any stay at 0.
void renormalize_kept(Routing& routing) {
  std::pmr::vector<float> sum(static_cast<size_t>(routing.tokens), 0.0f, cpu::scratch());
  for (int64_t a = 0; a < routing.assignments(); ++a) {
    if (!routing.kept[a]) routing.gate[a] = 0;
    sum[static_cast<size_t>(routing.token[a])] += routing.gate[a];
  }
  for (int64_t a = 0; a < routing.assignments(); ++a)
    if (const float of_token = sum[static_cast<size_t>(routing.token[a])]; of_token > 0) routing.gate[a] /= of_token;
}

}  // namespace

bool apply_capacity(Routing& routing, const CapacityOptions& options, double factor, const int64_t* image,
                    const int64_t* group) {
  if (factor == 0 || routing.per_token == 0) return false;
  const TokenGroups groups = token_groups(routing.layout, options, image, group);
  SlotRequests requests{.tokens = routing.tokens,
                        .experts = routing.experts,
                        .assignments = routing.assignments(),
                        .per_token = routing.per_token,
                        .varying = routing.varying,
                        .token = routing.token.data(),
                        .expert = routing.expert.data(),
                        .rank = routing.rank.data(),
                        .groups = static_cast<int64_t>(groups.sizes.size()),
                        .group = groups.of_token.empty() ? nullptr : groups.of_token.data(),
                        .group_sizes = groups.sizes.data()};
  std::pmr::vector<double> score(cpu::scratch()), priority(cpu::scratch());
  if (options.priority != "none") {
    for (int64_t a = 0; a < routing.assignments(); ++a)
      score.push_back(routing.scores.empty() ? routing.gate[a]
                                             : routing.scores[routing.token[a] * routing.experts + routing.expert[a]]);
    priority.resize(static_cast<size_t>(routing.tokens));
    token_priority(requests, score.data(), options.priority == "sum_gates", priority.data());
    requests.priority = priority.data();
  }
  assign_slots(options, factor, requests, routing.capacity.resize(requests.groups),
               routing.position.resize(routing.assignments()), routing.kept.resize(routing.assignments()));
  if (options.renormalize) renormalize_kept(routing);
  routing.group_kept();
  return true;
}

}  // namespace engine

}  // namespace sparsight
