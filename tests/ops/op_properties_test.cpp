// Every operation of ops/ against its reference, on random shapes: empty, without width, ragged, all to one expert,
// with one expert and with many. The contracts of the operations: ops/*.h.
#include <ATen/Parallel.h>

#include <limits>
#include <ostream>

#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "sparsight/ops/ref/rows.h"
#include "sparsight/ops/ref/sort_by_expert.h"
#include "sparsight/ops/ref/top_experts.h"
#include "sparsight/ops/rows.h"
#include "sparsight/ops/sort_by_expert.h"
#include "sparsight/ops/top_experts.h"
#include "tests/ops/packed_error.h"
#include "tests/support/near.h"
#include "tests/support/property.h"
#include "tests/support/random_tensor.h"

namespace sparsight::op_properties_test {
namespace {

using test::any_seed;
using test::as_double;
using test::at_each_level;
using test::for_all;
using test::from_to;
using test::must_hold;

// How tokens choose: evenly, nearly all the same expert, or all the same.
enum class Spread { even, skewed, one };

struct Shape {
  int64_t tokens = 0, experts = 1, k = 1, width = 1, hidden = 1;
  Spread spread = Spread::even;
  double kept = 1;  // fraction of the assignments kept after capacity
  bool bias = true;
  uint64_t seed = 1;

  int64_t choices() const { return std::min(k, experts); }
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "tokens " << s.tokens << ", experts " << s.experts << ", k " << s.choices() << ", width " << s.width
             << ", hidden " << s.hidden << ", spread " << static_cast<int>(s.spread) << ", kept " << s.kept << ", bias "
             << s.bias << ", seed " << s.seed;
}

rc::Gen<Shape> shapes(int64_t tokens, int64_t experts, int64_t width, int64_t hidden) {
  return rc::gen::build<Shape>(
      rc::gen::set(&Shape::tokens, from_to(0, tokens)), rc::gen::set(&Shape::experts, from_to(1, experts)),
      rc::gen::set(&Shape::k, from_to(1, 4)), rc::gen::set(&Shape::width, from_to(0, width)),
      rc::gen::set(&Shape::hidden, from_to(0, hidden)),
      rc::gen::set(&Shape::spread, rc::gen::element(Spread::even, Spread::skewed, Spread::one)),
      rc::gen::set(&Shape::kept, rc::gen::element(1.0, 0.6, 0.0)),
      rc::gen::set(&Shape::bias, rc::gen::arbitrary<bool>()), rc::gen::set(&Shape::seed, any_seed()));
}

at::Tensor uniform(at::IntArrayRef sizes, uint64_t seed) {
  return uniform_like(torch::empty({0}, torch::kDouble), sizes, RandomStream(seed, "uniform"));
}

struct Choices {
  at::Tensor token, expert, kept;  // [A]
};

// Distinct experts for each token.
Choices make_choices(const Shape& s) {
  at::Tensor score = uniform({s.tokens, s.experts}, s.seed);
  if (s.spread != Spread::even) {
    const at::Tensor favoured = torch::arange(s.experts, torch::kDouble) * (s.spread == Spread::one ? -10.0 : -0.5);
    score = score + favoured;
  }
  const int64_t k = s.choices();
  const at::Tensor token = torch::arange(s.tokens, torch::kLong).unsqueeze(1).expand({s.tokens, k}).reshape({-1});
  return {token, ref::top_experts(score, k).reshape({-1}), uniform({s.tokens * k}, s.seed + 1) < s.kept};
}

ExpertRows make_rows(const Shape& s, at::ScalarType type) {
  const Choices c = make_choices(s);
  const ExpertGroups groups = ref::sort_by_expert(c.expert, c.kept, s.experts);
  return {ref::map_rows(c.token, groups.order, s.tokens), groups.offsets,
          uniform({groups.order.size(0)}, s.seed + 2).to(type)};
}

ExpertMlpWeights make_weights(const Shape& s, at::ScalarType type) {
  const auto of = [&](at::IntArrayRef sizes, uint64_t n, int64_t inputs) {
    return test::random_tensor(sizes, s.seed + n, type) / std::sqrt(static_cast<double>(inputs));
  };
  return {of({s.experts, s.width, s.hidden}, 3, s.width), s.bias ? of({s.experts, s.hidden}, 4, 1) : at::Tensor(),
          of({s.experts, s.hidden, s.width}, 5, s.hidden), s.bias ? of({s.experts, s.width}, 6, 1) : at::Tensor()};
}

ExpertMlpWeights as_double(const ExpertMlpWeights& w) {
  return {as_double(w.w1), as_double(w.b1), as_double(w.w2), as_double(w.b2)};
}

// Within 2e-5 of the largest element, plus 2e-5.
void must_agree(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  RC_ASSERT(got.defined() == want.defined());
  if (!want.defined()) return;
  const double largest = want.numel() > 0 ? want.abs().max().item<double>() : 0;
  must_hold(test::near(got, want, 2e-5 * (1 + largest)), what);
}

}  // namespace

TEST(OpsProperties, TopExpertsAreThoseOfTheReference) {
  for_all(
      [] {
        const int64_t tokens = *from_to(0, 60), experts = *from_to(1, 70), k = std::min(*from_to(1, 70), experts);
        const uint64_t seed = *any_seed();
        at::Tensor scores = (test::random_tensor({tokens, experts}, seed) * 2).round();  // ties
        const at::Tensor chance = uniform({tokens, experts}, seed);
        scores.masked_fill_(chance < 0.1, std::numeric_limits<double>::quiet_NaN());
        scores.masked_fill_((chance > 0.1) & (chance < 0.15), std::numeric_limits<double>::infinity());
        scores.masked_fill_(chance > 0.95, -std::numeric_limits<double>::infinity());
        for (const auto type : {torch::kFloat, torch::kDouble}) {
          const at::Tensor in = scores.to(type), strided = in.t().contiguous().t();
          RC_ASSERT(torch::equal(top_experts(in, k), ref::top_experts(in, k)));
          RC_ASSERT(torch::equal(top_experts(strided, k), ref::top_experts(in, k)));
        }
      },
      100);
}

TEST(OpsProperties, SortByExpertGroupsAsTheReference) {
  for_all(
      [] {
        const Shape s = *shapes(200, 20, 1, 1);
        const Choices c = make_choices(s);
        const ExpertGroups fast = sort_by_expert(c.expert, c.kept, s.experts);
        const ExpertGroups slow = ref::sort_by_expert(c.expert, c.kept, s.experts);
        RC_ASSERT(torch::equal(fast.order, slow.order));
        RC_ASSERT(torch::equal(fast.offsets, slow.offsets));
        RC_ASSERT(torch::equal(count_by_expert(c.expert, s.experts), ref::count_by_expert(c.expert, s.experts)));
      },
      100);
}

TEST(OpsProperties, RowsMoveAsInTheReference) {
  for_all([] {
    const Shape s = *shapes(80, 9, 70, 1);
    const Choices c = make_choices(s);
    const at::Tensor order = ref::sort_by_expert(c.expert, c.kept, s.experts).order;
    const RowMap map = map_rows(c.token, order, s.tokens), slow = ref::map_rows(c.token, order, s.tokens);
    RC_ASSERT(torch::equal(map.row_token, slow.row_token));
    RC_ASSERT(torch::equal(map.token_rows, slow.token_rows));
    RC_ASSERT(torch::equal(map.token_offsets, slow.token_offsets));
    const int64_t rows = order.size(0);
    for (const auto type : {torch::kDouble, torch::kFloat, torch::kBFloat16, torch::kHalf}) {
      const double tol = type == torch::kDouble ? 1e-12 : type == torch::kFloat ? 1e-4 : 0.1;
      const at::Tensor values = test::random_tensor({s.tokens, s.width}, s.seed, type);
      const at::Tensor of_rows = test::random_tensor({rows, s.width}, s.seed + 1, type);
      const at::Tensor gate = s.bias ? test::random_tensor({rows}, s.seed + 2, torch::kFloat) : at::Tensor();
      must_hold(test::near(gather_rows(values, gate, map), ref::gather_rows(values, gate, map), tol), "spread");
      must_hold(test::near(scatter_add_rows(of_rows, gate, map), ref::scatter_add_rows(of_rows, gate, map), tol),
                "sum");
      must_hold(test::near(dot_rows(of_rows, values, map), ref::dot_rows(of_rows, values, map), 10 * tol), "dot");
    }
  });
}

TEST(OpsProperties, GroupedLinearIsAProductRowByRow) {
  for_all([] {
    const Shape s = *shapes(60, 6, 40, 40);
    const ExpertRows r = make_rows(s, torch::kDouble);
    const int64_t rows = r.map.row_token.size(0);
    at::Tensor x = test::random_tensor({rows, s.width}, s.seed),
               upstream = test::random_tensor({rows, s.hidden}, s.seed + 9);
    ExpertMlpWeights w = make_weights(s, torch::kDouble);
    for (at::Tensor* t : {&x, &w.w1, &w.b1})
      if (t->defined()) *t = t->detach().requires_grad_(true);
    const std::vector<at::Tensor> leaves =
        s.bias ? std::vector<at::Tensor>{x, w.w1, w.b1} : std::vector<at::Tensor>{x, w.w1};
    const auto gradients = [&](const at::Tensor& y) { return torch::autograd::grad({(y * upstream).sum()}, leaves); };
    const at::Tensor expert = torch::repeat_interleave(torch::arange(s.experts, torch::kLong), r.offsets.diff());
    at::Tensor by_rows = torch::bmm(x.unsqueeze(1), w.w1.index_select(0, expert)).squeeze(1);
    if (s.bias) by_rows = by_rows + w.b1.index_select(0, expert);
    const at::Tensor got = grouped_linear(x, r.offsets, w.w1, w.b1);
    must_hold(test::near(got, by_rows, 1e-11), "result");
    const auto wanted = gradients(by_rows), found = gradients(got);
    for (size_t i = 0; i < wanted.size(); ++i) must_hold(test::near(found[i], wanted[i], 1e-11), cat("gradient ", i));
  });
}

TEST(OpsProperties, GroupedLinearInFp32AgreesWithTheReferenceForwardAndBackwardAtEveryLevel) {
  for_all([] {
    const Shape s = *shapes(250, 9, 130, 150);
    const ExpertRows r = make_rows(s, torch::kFloat);
    const int64_t rows = r.map.row_token.size(0);
    const at::Tensor x = test::random_tensor({rows, s.width}, s.seed, torch::kFloat);
    const at::Tensor upstream = test::random_tensor({rows, s.hidden}, s.seed + 9, torch::kFloat);
    const ExpertMlpWeights w = make_weights(s, torch::kFloat);
    const at::Tensor want = ref::grouped_linear_forward(as_double(x), r.offsets, as_double(w.w1), as_double(w.b1));
    const GroupedLinearGradients grads =
        ref::grouped_linear_backward(as_double(upstream), as_double(x), r.offsets, as_double(w.w1), {.bias = s.bias});
    at_each_level([&](const std::string& level) {
      const auto leaf = [](const at::Tensor& t) { return t.defined() ? t.detach().clone().requires_grad_(true) : t; };
      const at::Tensor in = leaf(x), weight = leaf(w.w1), bias = leaf(w.b1);
      const at::Tensor y = grouped_linear(in, r.offsets, weight, bias);
      (y * upstream).sum().backward();
      must_agree(y, want, level);
      must_agree(in.grad(), grads.rows, level + " rows");
      must_agree(weight.grad(), grads.weight, level + " weight");
      if (s.bias) must_agree(bias.grad(), grads.bias, level + " bias");
    });
  });
}

TEST(OpsProperties, ExpertMlpAgreesWithTheReferenceForwardAndBackwardAtEveryLevel) {
  for_all([] {
    const Shape s = *shapes(120, 9, 130, 300);
    const auto activation =
        *rc::gen::element(Activation::gelu, Activation::relu, Activation::silu, Activation::gelu_tanh);
    const bool gated = *rc::gen::arbitrary<bool>();
    ExpertRows rows = make_rows(s, torch::kFloat);
    if (!gated) rows.gate = at::Tensor();
    const ExpertMlpWeights w = make_weights(s, torch::kFloat);
    const at::Tensor tokens = test::random_tensor({s.tokens, s.width}, s.seed + 7, torch::kFloat);
    const at::Tensor upstream = test::random_tensor({s.tokens, s.width}, s.seed + 8, torch::kFloat);
    ExpertRows wide = rows;
    wide.gate = as_double(rows.gate);
    const at::Tensor want = ref::expert_mlp_forward(as_double(tokens), wide, as_double(w), activation, nullptr);
    const ExpertMlpGradients grads = ref::expert_mlp_backward(as_double(upstream), as_double(tokens), wide,
                                                              as_double(w), activation, {}, {true, gated});
    at_each_level([&](const std::string& level) {
      for (const bool recompute : {false, true}) {
        std::vector<at::Tensor> leaves;
        const auto leaf = [&](const at::Tensor& t) {
          if (!t.defined()) return t;
          leaves.push_back(t.detach().clone().requires_grad_(true));
          return leaves.back();
        };
        ExpertRows in = rows;
        const at::Tensor x = leaf(tokens);
        in.gate = leaf(rows.gate);
        const ExpertMlpWeights weights{leaf(w.w1), leaf(w.b1), leaf(w.w2), leaf(w.b2)};
        const at::Tensor y = expert_mlp(x, in, weights, {activation, recompute});
        (y * upstream).sum().backward();
        must_agree(y, want, level);
        must_agree(x.grad(), grads.tokens, level + " tokens");
        if (gated) must_agree(in.gate.grad(), grads.gate, level + " gate");
        must_agree(weights.w1.grad(), grads.weights.w1, level + " w1");
        must_agree(weights.w2.grad(), grads.weights.w2, level + " w2");
        if (s.bias) {
          must_agree(weights.b1.grad(), grads.weights.b1, level + " b1");
          must_agree(weights.b2.grad(), grads.weights.b2, level + " b2");
        }
      }
    });
  });
}

TEST(OpsProperties, ExpertMlpHasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for_all(
      [] {
        const Shape s = *shapes(300, 9, 130, 300);
        const ExpertRows rows = make_rows(s, torch::kFloat);
        const ExpertMlpWeights w = make_weights(s, torch::kFloat);
        const at::Tensor tokens = test::random_tensor({s.tokens, s.width}, s.seed + 7, torch::kFloat);
        at_each_level([&](const std::string&) {
          std::vector<std::vector<at::Tensor>> all;
          for (const int n : {1, 2, 4}) {
            at::set_num_threads(n);
            std::vector<at::Tensor> leaves{tokens, rows.gate, w.w1, w.w2};
            for (at::Tensor& leaf : leaves) leaf = leaf.detach().clone().requires_grad_(true);
            const at::Tensor y =
                expert_mlp(leaves[0], {rows.map, rows.offsets, leaves[1]}, {leaves[2], w.b1, leaves[3], w.b2}, {});
            y.square().sum().backward();
            all.push_back({y.detach()});
            for (const at::Tensor& leaf : leaves) all.back().push_back(leaf.grad());
          }
          for (size_t n = 1; n < all.size(); ++n)
            for (size_t i = 0; i < all[0].size(); ++i) RC_ASSERT(torch::equal(all[n][i], all[0][i]));
        });
      },
      10);
  at::set_num_threads(threads);
}

TEST(OpsProperties, PackedExpertsComputeWithTheirUnpackedWeights) {
  for_all([] {
    const Shape s = *shapes(40, 9, 130, 300);
    const auto type = *rc::gen::element(WeightType::fp32, WeightType::bf16, WeightType::int8);
    const at::Tensor tokens = test::random_tensor({s.tokens, s.width}, s.seed + 7, torch::kFloat);
    const test::Case c{tokens, {}, make_rows(s, torch::kFloat), make_weights(s, torch::kFloat)};
    const PackedExperts packed = pack_expert_weights(c.weights, type);
    const test::Exact exact = test::exact(c, packed);
    at_each_level([&](const std::string& level) {
      const at::Tensor got = packed_experts(c.tokens, c.rows, packed, Activation::gelu);
      must_hold(test::within_packed_error(got, exact, type, Activation::gelu), level);
    });
  });
}

}  // namespace sparsight::op_properties_test
