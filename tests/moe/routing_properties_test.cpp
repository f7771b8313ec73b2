// Capacity and dispatch against obvious versions of themselves, on random routings.
#include <algorithm>
#include <numeric>
#include <ostream>

#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/capacity.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/expert_picks.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/support/near.h"
#include "tests/support/property.h"
#include "tests/support/random_tensor.h"

namespace sparsight::routing_properties_test {
namespace {

using test::any_seed;
using test::for_all;
using test::from_to;
using test::must_hold;

struct Pool {
  int64_t tokens = 0, experts = 1, k = 1, group = 0;
  int64_t distinct = 3;  // gates are rounded to so many values: equal priorities
  double skipped = 0;    // share of the assignments that the router left out
  uint64_t seed = 1;

  int64_t choices() const { return std::min(k, experts); }
};

std::ostream& operator<<(std::ostream& out, const Pool& p) {
  return out << "tokens " << p.tokens << ", experts " << p.experts << ", k " << p.choices() << ", group " << p.group
             << ", distinct gates " << p.distinct << ", skipped " << p.skipped << ", seed " << p.seed;
}

rc::Gen<Pool> pools() {
  return rc::gen::build<Pool>(rc::gen::set(&Pool::tokens, from_to(0, 60)), rc::gen::set(&Pool::experts, from_to(1, 12)),
                              rc::gen::set(&Pool::k, from_to(1, 4)), rc::gen::set(&Pool::group, from_to(0, 20)),
                              rc::gen::set(&Pool::distinct, from_to(1, 8)),
                              rc::gen::set(&Pool::skipped, rc::gen::element(0.0, 0.3)),
                              rc::gen::set(&Pool::seed, any_seed()));
}

Routing make_routing(const Pool& p) {
  Routing r = route_softmax_topk(test::random_tensor({p.tokens, p.experts}, p.seed), {}, 0, p.choices(), false);
  set_consecutive_groups(r, p.group);
  for (at::Tensor* values : {&r.gate, &r.scores})
    *values = (*values * static_cast<double>(p.distinct)).ceil() / static_cast<double>(p.distinct);
  if (p.skipped > 0)
    select_assignments(r, torch::nonzero(test::random_tensor(r.token.sizes(), p.seed + 1) > -0.5).squeeze(1));
  return r;
}

std::vector<int64_t> listed(const at::Tensor& x) {
  const at::Tensor in = x.to(torch::kLong).contiguous();
  return {in.const_data_ptr<int64_t>(), in.const_data_ptr<int64_t>() + in.numel()};
}

// Which assignments are kept: all first choices get slots before all second ones; within a rank, the tokens of a group
// in the order of `score` (decreasing, the lower token first).
std::vector<bool> kept_by_asking(const Routing& r, const std::vector<double>& score, int64_t group,
                                 const std::function<int64_t(int64_t)>& group_capacity) {
  const std::vector<int64_t> listed_token = listed(r.token), listed_rank = listed(r.rank),
                             listed_expert = listed(r.expert);
  std::vector<bool> kept(listed_token.size(), false);
  const int64_t step = group == 0 ? std::max<int64_t>(1, r.tokens) : group;
  for (int64_t first = 0; first < r.tokens; first += step) {
    const int64_t last = std::min(first + step, r.tokens), limit = group_capacity(last - first);
    std::vector<int64_t> tokens(static_cast<size_t>(last - first));
    std::iota(tokens.begin(), tokens.end(), first);
    std::stable_sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) {
      return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)];
    });
    std::map<int64_t, int64_t> taken;
    for (int64_t rank = 0; rank < r.per_token; ++rank)
      for (const int64_t token : tokens)
        for (size_t a = 0; a < listed_token.size(); ++a)
          if (listed_token[a] == token && listed_rank[a] == rank) kept[a] = taken[listed_expert[a]]++ < limit;
  }
  return kept;
}

}  // namespace

TEST(MoeProperties, CapacityKeepsWhoAsksFirst) {
  for_all(
      [] {
        const Pool p = *pools();
        CapacityOptions options;
        options.priority = *rc::gen::element<std::string>("none", "max_gate", "sum_gates");
        options.rounding = *rc::gen::element<std::string>("ceil", "floor", "round", "floor_per_choice");
        options.multiple = *from_to(1, 4);
        options.minimum = *from_to(1, 4);
        options.count_k = *rc::gen::arbitrary<bool>();
        const double factor = *rc::gen::element(0.3, 0.5, 1.0, 1.25, 10.0);
        Routing r = make_routing(p);
        std::vector<double> score(static_cast<size_t>(p.tokens), 0);
        for (int64_t a = 0; a < r.token.size(0) && options.priority != "none"; ++a) {
          double& s = score[static_cast<size_t>(r.token[a].item<int64_t>())];
          const double chosen = r.scores[r.token[a].item<int64_t>()][r.expert[a].item<int64_t>()].item<double>();
          s = options.priority == "sum_gates" ? s + chosen : std::max(s, chosen);
        }
        const auto group_capacity = [&](int64_t tokens) {
          return expert_capacity(options, factor, tokens, p.experts, r.per_token);
        };
        const std::vector<bool> want = kept_by_asking(r, score, p.group, group_capacity);
        const at::Tensor chosen = r.chosen_count.clone();
        apply_capacity(r, options, factor);
        for (int64_t a = 0; a < r.token.size(0); ++a) RC_ASSERT(r.kept[a].item<bool>() == want[static_cast<size_t>(a)]);
        RC_ASSERT(torch::equal(r.chosen_count, chosen));  // what was chosen stays what it was
        RC_ASSERT(r.order.size(0) == r.kept.sum().item<int64_t>());
        RC_ASSERT(torch::equal(r.offsets.diff(), torch::bincount(r.expert.masked_select(r.kept), {}, p.experts)));
      },
      60);
}

TEST(MoeProperties, DispatchEqualsTheDenseDefinitionForwardAndBackward) {
  for_all([] {
    const Pool p = *pools();
    const int64_t width = *from_to(1, 9);
    const double factor = *rc::gen::element(0.0, 0.5);
    MlpExperts experts({}, {p.experts, width, 5});
    experts.to(torch::kDouble);
    uint64_t n = p.seed;
    for (auto& w : experts.parameters()) w.data().copy_(test::random_tensor(w.sizes(), ++n));
    Routing r = make_routing(p);
    apply_capacity(r, {}, factor);
    r.gate = r.gate.detach().requires_grad_(true);
    const at::Tensor x = test::random_tensor({p.tokens, width}, p.seed + 50).requires_grad_(true);
    std::vector<at::Tensor> leaves = experts.parameters();
    leaves.insert(leaves.end(), {x, r.gate});
    const at::Tensor upstream = test::random_tensor({p.tokens, width}, p.seed + 51);
    const auto gradients = [&](const at::Tensor& y) { return torch::autograd::grad({(y * upstream).sum()}, leaves); };

    const auto w = experts.named_parameters();
    const at::Tensor hidden = at::gelu(torch::einsum("nd,edf->enf", {x, w["w1"]}) + w["b1"].unsqueeze(1));
    const at::Tensor outputs = torch::einsum("enf,efd->end", {hidden, w["w2"]}) + w["b2"].unsqueeze(1);
    const at::Tensor gates =
        torch::zeros({p.tokens, p.experts}, torch::kDouble).index_put({r.token, r.expert}, r.gate * r.kept);
    const at::Tensor dense = torch::einsum("ne,end->nd", {gates, outputs});
    const auto wanted = gradients(dense);
    // The kernel of MLPs, and the way of every other kind: gather, forward, combine.
    const at::Tensor fused = experts.apply_routing(x, r), by_parts = experts.Experts::apply_routing(x, r);
    for (const at::Tensor& y : {fused, by_parts}) {
      must_hold(test::near(y, dense, 1e-10), "result");
      const auto found = gradients(y);
      for (size_t i = 0; i < wanted.size(); ++i) must_hold(test::near(found[i], wanted[i], 1e-9), cat("gradient ", i));
    }
  });
}

TEST(MoeProperties, ExpertsTakeTheirBestTokens) {
  for_all([] {
    const int64_t groups = *from_to(1, 4), per_group = *from_to(1, 12), experts = *from_to(1, 6);
    const uint64_t seed = *any_seed();
    const int64_t tokens = groups * per_group;
    const at::Tensor scores = (test::random_tensor({tokens, experts}, seed) * 2).round();  // ties
    const at::Tensor valid = test::random_tensor({tokens}, seed + 1) > -0.8;
    const at::Tensor ranked = ranked_tokens(scores, groups, valid);
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t g = 0; g < groups; ++g) {
        std::vector<int64_t> want(static_cast<size_t>(per_group));
        std::iota(want.begin(), want.end(), 0);
        const auto key = [&](int64_t t) {
          const int64_t token = g * per_group + t;
          return std::pair(valid[token].item<bool>() ? 0 : 1, -scores[token][e].item<double>());
        };
        std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
        RC_ASSERT(torch::equal(ranked[e][g], torch::tensor(want, torch::kLong)));
      }
  });
}

}  // namespace sparsight::routing_properties_test
